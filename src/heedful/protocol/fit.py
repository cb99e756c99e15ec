"""Choose a policy on the fit side: the only place that tunes anything."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, permutations, product
from math import inf

import numpy as np

from heedful.errors import UsageError
from heedful.protocol.calibrators import fit_calibrators
from heedful.protocol.replay import Replayer, Scores
from heedful.protocol.study import FitSettings
from heedful.protocol.table import Floats, Ints, Table
from heedful.stages.calibrate import CALIBRATED
from heedful.types import Policy

PERCENTILES = tuple(range(5, 101, 5))
SIMPLICITY = ("never", "always", "gate", "choose", "agree", "cascade", "dual")
"""Families from the simplest on: ties go to the simpler."""
SINGLE_MARGINS = (0, 10, 20, 30, 40, 50, 60, 70, 80, 90)
PAIR_MARGINS = (0, 20, 40, 60, 80)
"""Margins are taken at these percentiles of the difference in confidence, and at 0."""


NO_LIMIT = 1.0
"""The budget of harm of a policy that may hurt every task."""


@dataclass(frozen=True, slots=True, order=True)
class Kind:
    """What cross-validation chooses between: a policy but for its numbers."""

    first: str
    family: str
    signal: str = ""
    sources: tuple[str, ...] = ()

    @property
    def simplicity(self) -> tuple[int, int]:
        """Smaller is simpler."""
        return SIMPLICITY.index(self.family), len(self.sources)


BASELINE = Kind("none", "never")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A policy with how it did on the rows it was tuned on."""

    policy: Policy
    kind: Kind
    objective: float
    calls: float

    @property
    def rank(self) -> tuple[float, float, tuple[int, int], Kind]:
        """For sorting: better objective, then fewer calls, then the simpler kind."""
        return (-round(self.objective, 9), round(self.calls, 9), self.kind.simplicity, self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A kind of policy judged by cross-validation."""

    kind: Kind
    objective: float
    """On rows that the policy of each fold was not tuned on."""
    accuracy: float
    calls: float

    @property
    def rank(self) -> tuple[float, float, tuple[int, int], Kind]:
        return (-round(self.objective, 9), round(self.calls, 9), self.kind.simplicity, self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The policy that was chosen, and how far its fit score flatters it."""

    choice: Choice
    held: Held
    leaders: Sequence[Held]
    """The best kinds by cross-validation, best first."""
    policies: int
    """How many policies were scored on the fit side."""
    rows: int
    """On how many rows."""
    notes: Sequence[str] = field(default=())

    @property
    def optimism(self) -> float:
        return self.choice.objective - self.held.objective


def fit(table: Table, banks: Sequence[str], settings: FitSettings) -> Fitted:
    """Choose the kind of policy by cross-validation, then its numbers on all rows of the table."""
    held = cross_validate(table, banks, settings)
    tuned = tune(table, banks, settings)
    return Fitted(
        choice=tuned.best[held[0].kind],
        held=held[0],
        leaders=held[:12],
        policies=tuned.policies,
        rows=len(table),
    )


def cross_validate(table: Table, banks: Sequence[str], settings: FitSettings) -> list[Held]:
    """Every kind of policy, tuned on all folds but one and judged on that one; best first."""
    totals: dict[Kind, list[tuple[int, int, int]]] = {}
    for rest, fold in folds_of(table, settings):
        judge = Replayer(table.rows(fold))
        for kind, choice in tune(table.rows(rest), banks, settings).best.items():
            done = judge.replay(choice.policy)
            totals.setdefault(kind, []).append((int(done.right.sum()), int(done.calls.sum()), len(fold)))
    return sorted(
        (held_of(kind, parts, settings) for kind, parts in totals.items()), key=lambda held: held.rank
    )


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best policy of every kind, out of how many."""

    best: Mapping[Kind, Choice]
    policies: int


def tune(table: Table, banks: Sequence[str], settings: FitSettings) -> Tuned:
    """The best policy of every kind on these rows."""
    best, policies = tune_within_budgets(table, banks, settings, (NO_LIMIT,))
    return Tuned({kind: choice for (kind, _), choice in best.items()}, policies)


def tune_within_budgets(
    table: Table, banks: Sequence[str], settings: FitSettings, budgets: Sequence[float]
) -> tuple[dict[tuple[Kind, float], Choice], int]:
    """The best policy of every kind that hurts no more than each budget allows; and how many there were."""
    replayer = Replayer(table)
    best: dict[tuple[Kind, float], Choice] = {}
    policies = 0
    for recipe in recipes(replayer, banks, settings):
        thresholds = thresholds_of(replayer, recipe.policy)
        scores = replayer.sweep(recipe.policy, thresholds)
        policies += len(thresholds)
        objective, calls = objective_of(scores, len(table), settings.cost)
        order = np.lexsort((calls, -np.round(objective, 9)))
        hurts = scores.hurts[order]
        made: dict[int, Choice] = {}
        for budget in budgets:
            allowed = np.flatnonzero(hurts <= budget * len(table))
            if not len(allowed):
                continue
            place = int(order[allowed[0]])
            if place not in made:
                made[place] = Choice(
                    policy=replace(recipe.policy, threshold=float(thresholds[place])),
                    kind=recipe.kind,
                    objective=float(objective[place]),
                    calls=float(calls[place]),
                )
            key = recipe.kind, budget
            if key not in best or made[place].rank < best[key].rank:
                best[key] = made[place]
    return best, policies


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A policy but for its threshold."""

    policy: Policy
    kind: Kind


def recipes(replayer: Replayer, banks: Sequence[str], settings: FitSettings) -> Iterator[Recipe]:
    """The whole grid: first source × family × signal × sources × margins."""
    firsts = ("none", *banks) if settings.firsts is None else settings.firsts
    for first in firsts:
        family = "never" if first == "none" else "always"
        yield Recipe(policy=Policy(first=first), kind=Kind(first, family))
        others = [source for source in ("none", *banks) if source != first]
        for signal in (*settings.signals, *((CALIBRATED,) if settings.calibrated else ())):
            start = Policy(first=first, signal=signal)
            if signal == CALIBRATED:
                start = replace(start, calibrators=fit_calibrators(replayer, first, others))
            yield from _of_signal(replayer, start, others, settings)


def _of_signal(
    replayer: Replayer, start: Policy, others: Sequence[str], settings: FitSettings
) -> Iterator[Recipe]:
    def recipe(family: str, sources: tuple[str, ...], margins: Mapping[str, float] | None) -> Recipe:
        policy = replace(start, sources=sources, margins=margins)
        if family == "agree":
            policy = replace(policy, combine="agree")
        elif family == "dual":
            policy = replace(policy, combine="dual")
        return Recipe(policy=policy, kind=Kind(start.first, family, start.signal, sources))

    for source in others:
        if "gate" in settings.families:
            yield recipe("gate", (source,), None)
        if "choose" in settings.families:
            for margin in _margins(replayer, start, source, SINGLE_MARGINS):
                yield recipe("choose", (source,), {source: margin})
    if "agree" in settings.families:
        for size in (2, 3):
            for several in permutations(others, size):
                yield recipe("agree", several, None)
    pairs = {"cascade": permutations(others, 2), "dual": combinations(others, 2)}
    for family, sets in pairs.items():
        if family in settings.families:
            for one, other in sets:
                grids = [_margins(replayer, start, source, PAIR_MARGINS) for source in (one, other)]
                for m1, m2 in product(*grids):
                    yield recipe(family, (one, other), {one: m1, other: m2})


def _margins(replayer: Replayer, start: Policy, source: str, percentiles: Sequence[int]) -> list[float]:
    """Margins worth trying: 0, and percentiles of how much surer the source is than the first pass."""
    difference = replayer.source_confidence(start, source) - replayer.first_confidence(start)
    known = difference[np.isfinite(difference) & (np.abs(difference) < 500)]
    if not len(known):
        return [0.0]
    return sorted({0.0, *(float(value) for value in np.percentile(known, percentiles))})


def thresholds_of(replayer: Replayer, policy: Policy) -> Floats:
    """Percentiles p5…p100 of the first pass's confidence; p100 routes every row."""
    if not policy.sources:
        return np.array([-inf])
    confidence = replayer.first_confidence(policy)
    known = confidence[np.isfinite(confidence)]
    if not len(known):
        return np.array([-inf])
    cuts = np.percentile(known, PERCENTILES)
    cuts[-1] = np.nextafter(cuts[-1], inf)
    return np.asarray(cuts)


def objective_of(scores: Scores, n: int, cost: float) -> tuple[Floats, Floats]:
    """Accuracy − λ·calls (eq. 1), and calls a task."""
    calls = scores.calls / n
    return np.asarray(scores.right / n - cost * calls), np.asarray(calls)


def folds_of(table: Table, settings: FitSettings) -> Iterator[tuple[Ints, Ints]]:
    """Rows of all folds but one, and of that one; the seeds of a task stay together."""
    tasks = sorted(set(table.tasks))
    if len(tasks) < 2:
        raise UsageError("a policy cannot be chosen on fewer than 2 questions")
    count = min(settings.folds, len(tasks))
    order = np.random.default_rng(settings.seed).permutation(len(tasks))
    fold_of = {tasks[task]: place % count for place, task in enumerate(order)}
    folds = np.array([fold_of[task] for task in table.tasks])
    for fold in range(count):
        yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)


def held_of(kind: Kind, parts: Sequence[tuple[int, int, int]], settings: FitSettings) -> Held:
    right, calls, n = (sum(part[place] for part in parts) for place in range(3))
    return Held(
        kind=kind, objective=right / n - settings.cost * calls / n, accuracy=right / n, calls=calls / n
    )
