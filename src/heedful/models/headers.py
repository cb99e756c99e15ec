"""Extra request headers, with secrets from the environment."""

import re
from collections.abc import Mapping, Sequence

from heedful.errors import MissingError, UsageError

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def read_headers(lines: Sequence[str]) -> dict[str, str]:
    """Headers from `NAME: VALUE` options."""
    pairs = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise UsageError(f"the header {name.strip()!r} has no value; write NAME: VALUE")
        pairs[name.strip()] = value.strip()
    return pairs


def filled_headers(headers: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Headers whose value `$NAME` is replaced by an environment variable, so that no file holds a secret."""
    filled = {}
    for name, value in headers.items():
        if value.startswith("$"):
            if value[1:] not in environment:
                raise MissingError(f"the header {name} needs the environment variable {value[1:]}; set it")
            value = environment[value[1:]].strip()
        if not _NAME.fullmatch(name) or not value.isprintable():
            raise UsageError(f"the header {name!r} has an invalid name or value; write NAME: VALUE")
        filled[name] = value
    return filled
