"""A harm limit that holds with a stated confidence (Learn-then-Test, Angelopoulos et al. 2021).

The fit side is split in two. The first part serves every data-driven choice: calibrators,
percentile thresholds, cross-validation, and the order in which policies will be tested, safest
first. The second part serves only the tests: an exact binomial p-value for "harm is above the
limit" for each policy in that fixed order, stopping at the first that is not rejected. Neither the
policies nor their order depend on the rows they are tested on, so the probability that any certified
policy harms more than the limit is at most 1 − confidence.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from heedful.errors import UsageError
from heedful.protocol.budget_scores import BUDGETS, BudgetScore, hurts_of, judge_within_budgets, safest_first
from heedful.protocol.fit import NO_LIMIT, TunedPolicy, fit_result, held_out_score, tune_within_budgets
from heedful.protocol.fit_result import (
    BASELINE,
    FitResult,
    HarmCertificate,
    HarmTest,
    HeldOutScore,
)
from heedful.protocol.replay import Replayer
from heedful.protocol.study import FitSettings
from heedful.protocol.table import Ints, Table
from heedful.stats.risk import binomial_p_value, certify_in_order
from heedful.types import Policy

LEAST_TASKS = 5
"""Two choosing tasks and three certifying tasks."""
NOTHING_CERTIFIED = "no policy was certified to keep the harm limit, so the baseline was chosen"
NOTHING_BETTER = "no policy did better than the baseline on the rows that choose, so none was tested for harm"


def fit_within_limit(table: Table, banks: Sequence[str], settings: FitSettings) -> FitResult:
    """The best policy certified to keep the limit; the baseline if there is none."""
    if len(set(table.clusters)) < LEAST_TASKS:
        raise UsageError(
            f"a harm limit needs at least {LEAST_TASKS} different questions on the fit side, and hundreds to "
            "be useful"
        )
    choosing, testing = halves(table, settings.seed)
    rows = table.rows(choosing)
    judged = judge_within_budgets(rows, banks, settings)
    tuned, policies = tune_within_budgets(rows, banks, settings, BUDGETS)
    plain = _plain_score(rows, settings)
    path = safest_first([one for one in judged if (one.kind, one.budget) in tuned], plain.objective)
    choices = [tuned[one.kind, one.budget] for one in path]
    certificate = certify(path, choices, Replayer(table.rows(testing)), len(set(rows.clusters)), settings)
    certified = [
        (choice, one.held_out)
        for choice, one, test in zip(choices, path, certificate.path, strict=True)
        if test.certified
    ]
    best = min(certified, key=lambda pair: pair[1].rank, default=None)
    if best is None or best[1].rank >= plain.rank:
        best = _baseline(rows, settings), plain
    leaders = sorted((one.held_out for one in judged if one.budget == NO_LIMIT), key=lambda held: held.rank)
    return replace(
        fit_result(*best, leaders, policies=policies, rows=len(rows)),
        notes=() if certified else (NOTHING_CERTIFIED if path else NOTHING_BETTER,),
        certificate=certificate,
    )


def certify(
    path: Sequence[BudgetScore],
    choices: Sequence[TunedPolicy],
    judge: Replayer,
    chosen_on: int,
    settings: FitSettings,
) -> HarmCertificate:
    """Test the policies in the order of the path, on rows not used to choose them."""
    assert settings.harm_limit is not None, "a study without a harm limit is fitted with fit()"
    hurts = [hurts_of(judge, choice.policy) for choice in choices]
    tasks = len(set(judge.table.clusters))
    passed = certify_in_order(hurts, tasks, settings.harm_limit, settings.confidence) if hurts else 0
    tests = [
        HarmTest(
            policy=choice.policy,
            objective=choice.objective,
            hurts_chosen_on=one.hurts,
            hurts=count,
            p_value=binomial_p_value(count, tasks, settings.harm_limit),
            certified=place < passed,
        )
        for place, (one, choice, count) in enumerate(zip(path, choices, hurts, strict=True))
    ]
    return HarmCertificate(
        limit=settings.harm_limit,
        confidence=settings.confidence,
        chosen_on=chosen_on,
        tested_on=tasks,
        path=tuple(tests),
    )


def _plain_score(table: Table, settings: FitSettings) -> HeldOutScore:
    """The score of the memory-free pass, which has nothing to tune."""
    right = table.column("none").right
    return held_out_score(BASELINE, [(int(right.sum()), len(right), len(right))], settings)


def _baseline(table: Table, settings: FitSettings) -> TunedPolicy:
    """The memory-free policy, which cannot do harm."""
    accuracy = float(table.column("none").right.mean())
    return TunedPolicy(policy=Policy(), kind=BASELINE, objective=accuracy - settings.cost, calls=1.0)


def halves(table: Table, seed: int) -> tuple[Ints, Ints]:
    """The choosing rows and the certifying rows; the rows of a cluster stay together."""
    clusters = sorted(set(table.clusters))
    order = np.random.default_rng([seed, 1]).permutation(len(clusters))
    chosen = {clusters[place] for place in order[: len(clusters) * 2 // 5]}
    inside = np.array([cluster in chosen for cluster in table.clusters])
    return np.flatnonzero(inside), np.flatnonzero(~inside)


def certifying_tasks(table: Table, settings: FitSettings) -> set[str]:
    """The tasks whose rows certify a harm limit."""
    return {table.tasks[row] for row in halves(table, settings.seed)[1]}


def choosing_rows(table: Table, settings: FitSettings) -> Table:
    """The rows on which anything may be chosen: with a harm limit, those that do not certify it."""
    return table if settings.harm_limit is None else table.rows(halves(table, settings.seed)[0])
