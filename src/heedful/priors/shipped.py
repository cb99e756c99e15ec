"""Estimators that were fitted on heedful's published ledgers, for use without any label.

A prior is a JSON file in this folder: the trees and a card that says what they were fitted on.
`benchmarks/priors.py` fits and judges them.
"""

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
    """A prior on a benchmark that it was not fitted on, at a stated cost and margin."""

    benchmark: str
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
    kind: AnswerKind
    """The kind of answers that it judges."""
    fitted_on: tuple[str, ...]
    """Benchmarks; only their fit sides."""
    models: tuple[str, ...]
    rows: int
    cost: float
    margin: float
    held_out: tuple[HeldOutGain, ...]
    """For each benchmark, a prior of the same recipe that was fitted without it."""
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


def prior_for(kind: AnswerKind, benchmark: str = "") -> Prior | None:
    """The prior for a kind of answers that never saw the benchmark; None if there is none."""
    fitting = [read_prior(name) for name in prior_names()]
    unseen = [prior for prior in fitting if prior.card.kind == kind and benchmark not in prior.card.fitted_on]
    return max(unseen, key=lambda prior: prior.card.rows, default=None)
