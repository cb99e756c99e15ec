"""A harm limit that holds with a stated confidence (Learn-then-Test, Angelopoulos et al. 2021).

The fit side is cut in two. On the first part everything data-driven happens: calibrators,
percentile thresholds, cross-validation, and the order in which policies will be tested, safest
first. The second part is used for nothing but the tests: an exact binomial p-value for "harm is
above the limit" for each policy in that fixed order, stopping at the first that is not rejected.
Because neither the policies nor their order depend on the rows they are tested on, the chance that
any certified policy harms more than the limit is at most 1 − confidence.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from heedful.protocol.fit import (
    BASELINE,
    Choice,
    Fitted,
    Held,
    cross_validate,
    objective_of,
    recipes,
    thresholds_of,
)
from heedful.protocol.replay import Replayer
from heedful.protocol.study import FitSettings
from heedful.protocol.table import Ints, Table
from heedful.stats.risk import binomial_p_value, certify_in_order
from heedful.types import Policy

LEADING_KINDS = 8
"""Only the best kinds of policy by cross-validation are put to the test."""
LONGEST_PATH = 20
NOTHING_CERTIFIED = "no policy was certified to keep the harm limit, so the baseline was chosen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """One policy on the path of tests."""

    choice: Choice
    hurts_chosen_on: int
    """Hurts among the rows on which the policy was chosen."""
    hurts: int
    """Hurts among the rows kept for the test."""
    p_value: float
    certified: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    limit: float
    confidence: float
    chosen_on: int
    tested_on: int
    path: Sequence[Tested]


def fit_within_limit(table: Table, banks: Sequence[str], settings: FitSettings) -> tuple[Fitted, Certificate]:
    """The best policy that is certified to keep the limit; the baseline when none is."""
    assert settings.harm_limit is not None, "a study without a harm limit is fitted with fit()"
    choosing, testing = halves(table, settings.seed)
    held = cross_validate(table.rows(choosing), banks, settings)
    path, policies = safest_first(table.rows(choosing), banks, settings, held)
    judge = Replayer(table.rows(testing))
    hurts = [hurts_of(judge, choice.policy) for choice, _ in path]
    passed = certify_in_order(hurts, len(testing), settings.harm_limit, settings.confidence)
    tested = [
        Tested(
            choice=choice,
            hurts_chosen_on=seen,
            hurts=found,
            p_value=binomial_p_value(found, len(testing), settings.harm_limit),
            certified=place < passed,
        )
        for place, ((choice, seen), found) in enumerate(zip(path, hurts, strict=True))
    ]
    certificate = Certificate(
        limit=settings.harm_limit,
        confidence=settings.confidence,
        chosen_on=len(choosing),
        tested_on=len(testing),
        path=tested,
    )
    certified = [one.choice for one in tested if one.certified]
    best = min((*certified, _baseline(table.rows(choosing), settings)), key=lambda one: one.rank)
    by_kind = {one.kind: one for one in held}
    fitted = Fitted(
        choice=best,
        held=by_kind[best.kind],
        leaders=held[:12],
        policies=policies,
        rows=len(table),
        notes=() if certified else (NOTHING_CERTIFIED,),
    )
    return fitted, certificate


def _baseline(table: Table, settings: FitSettings) -> Choice:
    """The memory-free policy, which cannot do harm."""
    accuracy = float(table.column("none").right.mean())
    return Choice(policy=Policy(), kind=BASELINE, objective=accuracy - settings.cost, calls=1.0)


def halves(table: Table, seed: int) -> tuple[Ints, Ints]:
    """Rows to choose on and rows to test on; the seeds of a task stay together."""
    tasks = sorted(set(table.tasks))
    order = np.random.default_rng([seed, 1]).permutation(len(tasks))
    chosen = {tasks[place] for place in order[: len(tasks) * 2 // 5]}
    inside = np.array([task in chosen for task in table.tasks])
    return np.flatnonzero(inside), np.flatnonzero(~inside)


def hurts_of(replayer: Replayer, policy: Policy) -> int:
    return int((replayer.base_right & ~replayer.replay(policy).right).sum())


def safest_first(
    table: Table, banks: Sequence[str], settings: FitSettings, held: Sequence[Held]
) -> tuple[list[tuple[Choice, int]], int]:
    """For each number of hurts the best policy that did no more of them, where more harm buys more;
    and how many policies there were."""
    kinds = {one.kind for one in held[:LEADING_KINDS]}
    best: dict[int, Choice] = {}
    replayer = Replayer(table)
    policies = 0
    for recipe in recipes(replayer, banks, settings):
        thresholds = thresholds_of(replayer, recipe.policy)
        policies += len(thresholds)
        if recipe.kind not in kinds or not recipe.policy.sources:
            continue
        scores = replayer.sweep(recipe.policy, thresholds)
        objective, calls = objective_of(scores, len(table), settings.cost)
        for place, hurts in enumerate(scores.hurts.tolist()):
            found = Choice(
                policy=replace(recipe.policy, threshold=float(thresholds[place])),
                kind=recipe.kind,
                objective=float(objective[place]),
                calls=float(calls[place]),
            )
            if hurts not in best or found.rank < best[hurts].rank:
                best[hurts] = found
    path: list[tuple[Choice, int]] = []
    for hurts, choice in sorted(best.items()):
        if not path or choice.objective > path[-1][0].objective + 1e-9:
            path.append((choice, hurts))
    return path[:LONGEST_PATH], policies
