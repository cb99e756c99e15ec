"""Refuse values of the wrong type or outside their limits, in one sentence."""

from collections.abc import Collection
from math import inf
from typing import TypeGuard

from heedful.errors import UsageError


def refuse_count(what: str, value: object, *, least: int, most: float = inf) -> None:
    """Raise `UsageError` unless the value is a whole number within these limits."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        limits = f"of at least {least}" if most == inf else f"from {least} to {most}"
        raise UsageError(f"{what} is {value!r}; set it to a whole number {limits}")


def refuse_seconds(what: str, value: object) -> None:
    """Raise `UsageError` unless the value is a finite time above 0."""
    if not is_number(value) or not 0 < value < inf:
        raise UsageError(f"{what} is {value!r}; set it to a finite number of seconds above 0")


def refuse_choice(what: str, value: object, known: Collection[str]) -> None:
    """Raise `UsageError` unless the value is one of the known ones."""
    if value not in known:
        raise UsageError(f"{what} is {value!r}; choose one of {', '.join(known)}")


def refuse_text(what: str, value: object) -> None:
    """Raise `UsageError` unless the value is text."""
    if not isinstance(value, str):
        raise UsageError(f"{what} is {value!r}; set it to text")


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether the value is a number; NaN is not."""
    return isinstance(value, int | float) and value == value
