"""Choose a policy on the fit side: the only place that tunes anything."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations, product
from math import inf

import numpy as np

from heedful.errors import UsageError
from heedful.protocol.calibrators import fit_calibrators
from heedful.protocol.fit_result import FitResult, HeldOutScore, PolicyKind, Rank, rank_of
from heedful.protocol.replay import Replayer, Scores
from heedful.protocol.study import FitSettings
from heedful.protocol.table import Floats, Ints, Table
from heedful.stages.calibrate import CALIBRATED
from heedful.types import Policy

PERCENTILES = tuple(range(5, 101, 5))
SINGLE_MARGINS = (0, 10, 20, 30, 40, 50, 60, 70, 80, 90)
PAIR_MARGINS = (0, 20, 40, 60, 80)
"""Margins are taken at these percentiles of the difference in confidence, and at 0."""


LEADERS = 12
"""How many of the best kinds are kept."""
NO_LIMIT = 1.0
"""The budget of harm of a policy that may hurt every task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedPolicy:
    """A policy with how it did on the rows it was tuned on."""

    policy: Policy
    kind: PolicyKind
    objective: float
    calls: float

    @property
    def rank(self) -> Rank:
        return rank_of(self.objective, self.calls, self.kind)


def fit(table: Table, banks: Sequence[str], settings: FitSettings) -> FitResult:
    """Choose the kind of policy by cross-validation, then its numbers on all rows of the table."""
    scores = cross_validate(table, banks, settings)
    tuned, policies = tune(table, banks, settings)
    return fit_result(tuned[scores[0].kind], scores[0], scores, policies=policies, rows=len(table))


def fit_result(
    chosen: TunedPolicy, score: HeldOutScore, leaders: Sequence[HeldOutScore], *, policies: int, rows: int
) -> FitResult:
    """The policy that was chosen out of so many on so many rows, with its held-out score."""
    return FitResult(
        policy=chosen.policy,
        kind=chosen.kind,
        objective=chosen.objective,
        held_out_objective=score.objective,
        optimism=chosen.objective - score.objective,
        policies=policies,
        rows=rows,
        leaders=tuple(leaders[:LEADERS]),
    )


def cross_validate(table: Table, banks: Sequence[str], settings: FitSettings) -> list[HeldOutScore]:
    """Every kind of policy, tuned on all folds but one and judged on that one; best first."""
    totals: dict[PolicyKind, list[tuple[int, int, int]]] = {}
    for rest, fold in folds_of(table, settings):
        judge = Replayer(table.rows(fold))
        for kind, tuned in tune(table.rows(rest), banks, settings)[0].items():
            done = judge.replay(tuned.policy)
            totals.setdefault(kind, []).append((int(done.right.sum()), int(done.calls.sum()), len(fold)))
    scores = [held_out_score(kind, parts, settings) for kind, parts in totals.items()]
    return sorted(scores, key=lambda score: score.rank)


def tune(
    table: Table, banks: Sequence[str], settings: FitSettings
) -> tuple[dict[PolicyKind, TunedPolicy], int]:
    """The best policy of every kind on these rows, and out of how many."""
    best, policies = tune_within_budgets(table, banks, settings, (NO_LIMIT,))
    return {kind: tuned for (kind, _), tuned in best.items()}, policies


def tune_within_budgets(
    table: Table, banks: Sequence[str], settings: FitSettings, budgets: Sequence[float]
) -> tuple[dict[tuple[PolicyKind, float], TunedPolicy], int]:
    """The best policy of every kind that hurts no more than each budget allows; and how many there were."""
    replayer = Replayer(table)
    best: dict[tuple[PolicyKind, float], TunedPolicy] = {}
    policies = 0
    for recipe in recipes(replayer, banks, settings):
        thresholds = thresholds_of(replayer, recipe.policy)
        scores = replayer.sweep(recipe.policy, thresholds)
        policies += len(thresholds)
        objective, calls = objective_of(scores, len(table), settings.cost)
        order = np.lexsort((calls, -np.round(objective, 9)))
        hurts = scores.hurts[order]
        made: dict[int, TunedPolicy] = {}
        for budget in budgets:
            allowed = np.flatnonzero(hurts <= budget * len(table))
            if not len(allowed):
                continue
            place = int(order[allowed[0]])
            if place not in made:
                made[place] = TunedPolicy(
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
    kind: PolicyKind


def recipes(replayer: Replayer, banks: Sequence[str], settings: FitSettings) -> Iterator[Recipe]:
    """The whole grid: first source × family × signal × sources × margins."""
    firsts = ("none", *banks) if settings.firsts is None else settings.firsts
    for first in firsts:
        family = "never" if first == "none" else "always"
        yield Recipe(policy=Policy(first=first), kind=PolicyKind(first, family))
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
        return Recipe(policy=policy, kind=PolicyKind(start.first, family, start.signal, sources))

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
    difference = replayer.confidence(start, source) - replayer.confidence(start, "first")
    known = difference[np.isfinite(difference) & (np.abs(difference) < 500)]
    if not len(known):
        return [0.0]
    return sorted({0.0, *(float(value) for value in np.percentile(known, percentiles))})


def thresholds_of(replayer: Replayer, policy: Policy) -> Floats:
    """Percentiles p5…p100 of the first pass's confidence; p100 routes every row."""
    if not policy.sources:
        return np.array([-inf])
    confidence = replayer.confidence(policy, "first")
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


def held_out_score(
    kind: PolicyKind, parts: Sequence[tuple[int, int, int]], settings: FitSettings
) -> HeldOutScore:
    right, calls, n = (sum(part[place] for part in parts) for place in range(3))
    return HeldOutScore(
        kind=kind, objective=right / n - settings.cost * calls / n, accuracy=right / n, calls=calls / n
    )
