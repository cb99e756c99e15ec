"""A harm limit that holds with a stated confidence (Learn-then-Test, Angelopoulos et al. 2021).

The fit side is cut in two. On the first part everything data-driven happens: calibrators,
percentile thresholds, cross-validation, and the order in which policies will be tested, safest
first. The second part is used for nothing but the tests: an exact binomial p-value for "harm is
above the limit" for each policy in that fixed order, stopping at the first that is not rejected.
Because neither the policies nor their order depend on the rows they are tested on, the chance that
any certified policy harms more than the limit is at most 1 − confidence.

How safe a policy is cannot be read off the rows it was tuned on: out of thousands, some do no harm
there by luck. So every kind of policy is tuned under several budgets of harm and judged, harm and
objective, on folds it was not tuned on. Out of hundreds of kinds some are lucky on those folds too,
above all those that change many answers; so the harm to expect of a kind is its hurts among the
answers it changed, drawn towards the rate of kinds that are like it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from heedful.errors import UsageError
from heedful.protocol.fit import (
    NO_LIMIT,
    TunedPolicy,
    fit_result,
    folds_of,
    held_out_score,
    tune_within_budgets,
)
from heedful.protocol.fit_result import (
    BASELINE,
    FitResult,
    HarmCertificate,
    HarmTest,
    HeldOutScore,
    PolicyKind,
)
from heedful.protocol.replay import PolicyReplay, Replayer
from heedful.protocol.study import FitSettings
from heedful.protocol.table import Ints, Table
from heedful.stats.risk import binomial_p_value, certify_in_order
from heedful.types import Policy

BUDGETS = (0.0, 0.005, 0.01, 0.02, 0.04, NO_LIMIT)
"""Shares of tasks that a policy may hurt where it is tuned."""
LONGEST_PATH = 20
LEAST_TASKS = 5
"""Two to choose on, three to test on."""
PRIOR_CHANGES = 20
"""The rate of hurts of like kinds weighs as much as so many changed answers of a kind's own."""
NOTHING_CERTIFIED = "no policy was certified to keep the harm limit, so the baseline was chosen"
NOTHING_BETTER = "no policy did better than the baseline on the rows that choose, so none was tested for harm"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetScore:
    """A kind of policy tuned under a budget of harm, judged on folds it was not tuned on."""

    kind: PolicyKind
    budget: float
    held_out: HeldOutScore
    hurts: int
    changes: int
    """Rows on which it says something else than the memory-free pass."""


def fit_within_limit(table: Table, banks: Sequence[str], settings: FitSettings) -> FitResult:
    """The best policy that is certified to keep the limit; the baseline when none is."""
    if len(set(table.tasks)) < LEAST_TASKS:
        raise UsageError(
            f"a harm limit needs at least {LEAST_TASKS} questions on the fit side, and hundreds to hold"
        )
    choosing, testing = halves(table, settings.seed)
    rows = table.rows(choosing)
    judged = judge_within_budgets(rows, banks, settings)
    tuned, policies = tune_within_budgets(rows, banks, settings, BUDGETS)
    plain = _plain_score(rows, settings)
    path = safest_first([one for one in judged if (one.kind, one.budget) in tuned], plain.objective)
    choices = [tuned[one.kind, one.budget] for one in path]
    certificate = certify(path, choices, Replayer(table.rows(testing)), len(set(rows.tasks)), settings)
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
    """Test the policies in the order of the path on rows that had no part in choosing them."""
    assert settings.harm_limit is not None, "a study without a harm limit is fitted with fit()"
    hurts = [hurts_of(judge, choice.policy) for choice in choices]
    tasks = len(set(judge.table.tasks))
    passed = certify_in_order(hurts, tasks, settings.harm_limit, settings.confidence) if hurts else 0
    tests = [
        HarmTest(
            policy=choice.policy,
            objective=choice.objective,
            hurts_chosen_on=one.hurts,
            hurts=found,
            p_value=binomial_p_value(found, tasks, settings.harm_limit),
            certified=place < passed,
        )
        for place, (one, choice, found) in enumerate(zip(path, choices, hurts, strict=True))
    ]
    return HarmCertificate(
        limit=settings.harm_limit,
        confidence=settings.confidence,
        chosen_on=chosen_on,
        tested_on=tasks,
        path=tuple(tests),
    )


def _plain_score(table: Table, settings: FitSettings) -> HeldOutScore:
    """The memory-free pass, which has nothing to tune."""
    right = table.column("none").right
    return held_out_score(BASELINE, [(int(right.sum()), len(right), len(right))], settings)


def _baseline(table: Table, settings: FitSettings) -> TunedPolicy:
    """The memory-free policy, which cannot do harm."""
    accuracy = float(table.column("none").right.mean())
    return TunedPolicy(policy=Policy(), kind=BASELINE, objective=accuracy - settings.cost, calls=1.0)


def halves(table: Table, seed: int) -> tuple[Ints, Ints]:
    """Rows to choose on and rows to test on; the seeds of a task stay together."""
    tasks = sorted(set(table.tasks))
    order = np.random.default_rng([seed, 1]).permutation(len(tasks))
    chosen = {tasks[place] for place in order[: len(tasks) * 2 // 5]}
    inside = np.array([task in chosen for task in table.tasks])
    return np.flatnonzero(inside), np.flatnonzero(~inside)


def certifying_tasks(table: Table, settings: FitSettings) -> set[str]:
    """The tasks whose rows certify a harm limit."""
    return {table.tasks[row] for row in halves(table, settings.seed)[1]}


def choosing_rows(table: Table, settings: FitSettings) -> Table:
    """The rows on which anything may be chosen: with a harm limit those that do not certify it."""
    return table if settings.harm_limit is None else table.rows(halves(table, settings.seed)[0])


def hurts_of(replayer: Replayer, policy: Policy) -> int:
    """Tasks that the policy hurts, under any seed: seeds of one task are no independent draws."""
    return _hurt_tasks(replayer, replayer.replay(policy))


def _hurt_tasks(replayer: Replayer, replayed: PolicyReplay) -> int:
    hurt = replayer.base_right & ~replayed.right
    return len({task for task, bad in zip(replayer.table.tasks, hurt, strict=True) if bad})


class Counts(NamedTuple):
    """What a policy did on some rows."""

    right: int
    calls: int
    rows: int
    hurts: int
    changes: int


def judge_within_budgets(table: Table, banks: Sequence[str], settings: FitSettings) -> list[BudgetScore]:
    """Cross-validate every kind under every budget."""
    totals: dict[tuple[PolicyKind, float], list[Counts]] = {}
    for rest, fold in folds_of(table, settings):
        judge = Replayer(table.rows(fold))
        done: dict[int, Counts] = {}  # by the id of a policy: several budgets may share one
        for key, choice in tune_within_budgets(table.rows(rest), banks, settings, BUDGETS)[0].items():
            if id(choice.policy) not in done:
                done[id(choice.policy)] = _count(judge, choice.policy)
            totals.setdefault(key, []).append(done[id(choice.policy)])
    return [
        BudgetScore(
            kind=kind,
            budget=budget,
            held_out=held_out_score(kind, [part[:3] for part in parts], settings),
            hurts=sum(part.hurts for part in parts),
            changes=sum(part.changes for part in parts),
        )
        for (kind, budget), parts in totals.items()
        if sum(part.rows for part in parts) == len(table)
    ]


def _count(judge: Replayer, policy: Policy) -> Counts:
    replayed = judge.replay(policy)
    return Counts(
        right=int(replayed.right.sum()),
        calls=int(replayed.calls.sum()),
        rows=len(judge.table),
        hurts=_hurt_tasks(judge, replayed),
        changes=int(judge.changed(policy, replayed).sum()),
    )


def safest_first(judged: Sequence[BudgetScore], least: float) -> list[BudgetScore]:
    """From the least expected harm on, each policy with a better held-out objective than those before."""
    expected = expected_hurts(judged)
    path: list[BudgetScore] = []
    for place in sorted(range(len(judged)), key=lambda at: (expected[at], judged[at].held_out.rank)):
        one = judged[place]
        if one.kind != BASELINE and one.held_out.objective > least + 1e-9:
            path.append(one)
            least = one.held_out.objective
    return path[:LONGEST_PATH]


def expected_hurts(judged: Sequence[BudgetScore]) -> list[float]:
    """The hurts to expect of each, for as many answers as it changed on the held-out folds.

    Kinds that differ in their signal and in the order of their sources only are much alike, so the rate
    is drawn towards theirs, and theirs towards the rate of all.
    """
    groups: dict[tuple[object, ...], list[BudgetScore]] = {}
    for one in judged:
        kind = one.kind
        alike = kind.first, kind.family, frozenset(kind.sources), one.budget
        groups.setdefault(alike, []).append(one)
    common = _rate(judged, 0.0)
    rates = {id(one): _rate(group, common) for group in groups.values() for one in group}
    return [one.changes * _rate([one], rates[id(one)]) for one in judged]


def _rate(judged: Sequence[BudgetScore], towards: float) -> float:
    """Hurts a changed answer, drawn towards a rate that counts as much as so many changes."""
    hurts, changes = sum(one.hurts for one in judged), sum(one.changes for one in judged)
    return (hurts + PRIOR_CHANGES * towards) / (changes + PRIOR_CHANGES)
