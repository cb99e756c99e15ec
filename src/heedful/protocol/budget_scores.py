"""The expected harm of each kind of policy, and the order in which kinds are tested for it.

The rows a policy was tuned on do not show how safe it is: out of thousands of policies, some do no
harm there by luck. So every kind of policy is tuned under several harm budgets, and its harm and
objective are measured on folds it was not tuned on. Out of hundreds of kinds, some are lucky on those
folds too, above all those that change many answers. The expected harm of a kind is therefore its rate
of hurts among the answers it changed, shrunk towards the rate of similar kinds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from heedful.protocol.fit import (
    NO_LIMIT,
    Tally,
    folds_of,
    held_out_score,
    tally_of,
    tune_within_budgets,
)
from heedful.protocol.fit_result import BASELINE, HeldOutScore, PolicyKind
from heedful.protocol.replay import PolicyReplay, Replayer
from heedful.protocol.study import FitSettings
from heedful.protocol.table import Table
from heedful.types import Policy

BUDGETS = (0.0, 0.005, 0.01, 0.02, 0.04, NO_LIMIT)
"""Shares of tasks that a policy may hurt on the rows it is tuned on."""
LONGEST_PATH = 20
PRIOR_CHANGES = 20
"""The prior rate, that of similar kinds, weighs as much as this many changed answers of the kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetScore:
    """A kind of policy tuned under a harm budget, scored on folds it was not tuned on."""

    kind: PolicyKind
    budget: float
    held_out: HeldOutScore
    hurts: int
    changes: int
    """Rows on which its answer differs from that of the memory-free pass."""


def hurts_of(replayer: Replayer, policy: Policy) -> int:
    """Clusters in which the policy hurts any row: rows of one cluster are not independent draws."""
    return _hurt_clusters(replayer, replayer.replay(policy))


def _hurt_clusters(replayer: Replayer, replayed: PolicyReplay) -> int:
    hurt = replayer.base_right & ~replayed.right
    return len({cluster for cluster, bad in zip(replayer.table.clusters, hurt, strict=True) if bad})


class Counts(NamedTuple):
    """What a policy did on some rows."""

    tally: Tally
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
            held_out=held_out_score(kind, [part.tally for part in parts], settings),
            hurts=sum(part.hurts for part in parts),
            changes=sum(part.changes for part in parts),
        )
        for (kind, budget), parts in totals.items()
        if sum(part.tally.rows for part in parts) == len(table)
    ]


def _count(judge: Replayer, policy: Policy) -> Counts:
    replayed = judge.replay(policy)
    return Counts(
        tally=tally_of(replayed),
        hurts=_hurt_clusters(judge, replayed),
        changes=int(judge.changed(policy, replayed).sum()),
    )


def safest_first(judged: Sequence[BudgetScore], least: float) -> list[BudgetScore]:
    """In order of expected harm, each policy whose held-out objective beats all before it."""
    expected = expected_hurts(judged)
    path: list[BudgetScore] = []
    for place in sorted(range(len(judged)), key=lambda at: (expected[at], judged[at].held_out.rank)):
        one = judged[place]
        if one.kind != BASELINE and one.held_out.objective > least + 1e-9:
            path.append(one)
            least = one.held_out.objective
    return path[:LONGEST_PATH]


def expected_hurts(judged: Sequence[BudgetScore]) -> list[float]:
    """The expected hurts of each kind, given the number of answers it changed on the held-out folds.

    Kinds that differ only in their signal and in the order of their sources are similar: the rate of a
    kind is shrunk towards that of its group, and the rate of a group towards that of all kinds.
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
    """Hurts per changed answer, shrunk towards a prior rate."""
    hurts, changes = sum(one.hurts for one in judged), sum(one.changes for one in judged)
    return (hurts + PRIOR_CHANGES * towards) / (changes + PRIOR_CHANGES)
