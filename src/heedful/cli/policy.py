"""A policy from the words of the command line."""

from collections.abc import Callable
from typing import Literal

from heedful import arms
from heedful.types import Policy

Arm = Literal["never", "retry", "always", "fixed-budget", "gate", "choose"]


def policy_of(arm: Arm, source: str, signal: str, threshold: float, margin: float) -> Policy:
    """The arm of that name over one bank."""
    made: dict[Arm, Callable[[], Policy]] = {
        "never": arms.never,
        "retry": lambda: arms.retry(threshold, signal=signal),
        "always": lambda: arms.always(source),
        "fixed-budget": lambda: arms.fixed_budget(source),
        "gate": lambda: arms.gate(source, threshold, signal=signal),
        "choose": lambda: arms.choose(source, threshold, margin, signal=signal),
    }
    return made[arm]()
