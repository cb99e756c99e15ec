"""Estimators that were fitted on heedful's published ledgers, for use without any label.

A prior is a JSON file in this folder: the trees and a card that says what they were fitted on.
`benchmarks/priors.py` fits and judges them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from heedful.errors import UsageError
from heedful.types import ValueTrees

AnswerKind = Literal["number", "choice", "text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutGain:
    """A prior on the fit side of a study whose benchmark it was not fitted on."""

    study: str
    model: str
    rows: int
    base: float
    accuracy: float
    helps: int
    hurts: int
    calls: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorCard:
    """What a prior was fitted on, and what it gained where it was not."""

    name: str
    fitted_on: tuple[str, ...]
    """Benchmarks; only their fit sides."""
    models: tuple[str, ...]
    rows: int
    logprobs: bool
    """Whether it uses log-probs; without them it goes by agreement, lengths and recall scores."""
    cost: float
    margins: Mapping[AnswerKind, float]
    """The margin to use without any label, by the kinds of answers for which gains were shown."""
    held_out: tuple[HeldOutGain, ...]
    """On each benchmark, a prior of the same recipe that was fitted without it."""
    licence: str = "Apache-2.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """Trees with their card."""

    card: PriorCard
    trees: ValueTrees


def prior_names() -> tuple[str, ...]:
    """The shipped priors."""
    shipped = (file.name for file in files("heedful.priors").iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in shipped if name.endswith(".json")))


@cache
def read_prior(name: str) -> Prior:
    """A shipped prior by its name."""
    if name not in prior_names():
        raise UsageError(f"there is no prior {name!r}; choose from {', '.join(prior_names())}")
    return msgspec.json.decode((files("heedful.priors") / f"{name}.json").read_bytes(), type=Prior)


def prior_for(kind: AnswerKind, *, benchmark: str = "", logprobs: bool = True) -> Prior | None:
    """The prior for a kind of answers that never saw the benchmark; None if there is none."""
    fitting = [
        prior
        for prior in map(read_prior, prior_names())
        if kind in prior.card.margins
        and benchmark not in prior.card.fitted_on
        and prior.card.logprobs == logprobs
    ]
    return max(fitting, key=lambda prior: prior.card.rows, default=None)
