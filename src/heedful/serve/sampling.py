"""How a chat request asks the upstream to sample, for the record of its decision."""

from collections.abc import Mapping
from typing import Any

from heedful.limits import is_number

SAMPLING = (
    *("temperature", "top_p", "top_k", "min_p", "seed"),
    *("frequency_penalty", "presence_penalty", "repetition_penalty"),
)
"""Request fields that shape the choice of tokens."""
LARGE = 2**63


def sampling_of(fields: Mapping[str, Any]) -> dict[str, int | float | None]:
    """The settings of a request; without a temperature, the upstream chooses it.

    A number that no record can hold is left to the upstream.
    """
    given = {name: fields[name] for name in SAMPLING if name in fields}
    usable = {name: value for name, value in given.items() if is_number(value) and abs(value) < LARGE}
    return {"temperature": None, **usable}
