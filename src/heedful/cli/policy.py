"""Policies from command-line options."""

from collections.abc import Callable
from typing import Literal

from heedful import arms
from heedful.types import Policy

Arm = Literal["never", "retry", "always", "fixed-budget", "gate", "choose"]


def policy_of(arm: Arm, source: str, signal: str, threshold: float, margin: float) -> Policy:
    """The policy of an arm with one source."""
    policies: dict[Arm, Callable[[], Policy]] = {
        "never": arms.never,
        "retry": lambda: arms.retry(threshold, signal=signal),
        "always": lambda: arms.always(source),
        "fixed-budget": lambda: arms.fixed_budget(source),
        "gate": lambda: arms.gate(source, threshold, signal=signal),
        "choose": lambda: arms.choose(source, threshold, margin, signal=signal),
    }
    return policies[arm]()
