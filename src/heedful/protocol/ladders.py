"""Ladders: policies tested for harm in an order that was fixed before the rows that test them.

A path of tuned policies, safest first; agreement of all banks at rising thresholds; the margins of a value
policy whose trees come from other rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Literal

from heedful.errors import UsageError
from heedful.protocol.budget_scores import BUDGETS, BudgetScore, judge_within_budgets, safest_first
from heedful.protocol.fit import TunedPolicy, fitted_value, scored_policy, tune_within_budgets
from heedful.protocol.fit_result import PolicyKind
from heedful.protocol.policy_grid import thresholds_of
from heedful.protocol.replay import Replayer
from heedful.protocol.study import FitSettings
from heedful.protocol.table import Table
from heedful.types import Policy

MARGINS = (0.7, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05, 0.0)
"""The margins of a value policy, safest first: a smaller margin replaces more answers."""
SIGNAL = "mean"
"""The signal of agreement; it is fixed, because choosing it would need rows."""
LadderName = Literal["thresholds", "agreement", "value", "prior"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Policies in the order of testing, and the rows that may test them."""

    name: LadderName
    steps: tuple[TunedPolicy, ...]
    hurts_chosen_on: tuple[int | None, ...]
    testing: Table
    chosen_on: int
    """Questions that its policies or their order come from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathSearch:
    """The tuned path, and what else the search for it found."""

    ladder: Ladder
    judged: tuple[BudgetScore, ...]
    policies: int


def tuned_path(
    rows: Table, testing: Table, banks: Sequence[str], settings: FitSettings, least: float
) -> PathSearch:
    """Threshold policies with a better held-out objective than `least`, safest first.

    For the promise that accuracy does not fall, the best comes first: a timid policy proves nothing.
    """
    judged = judge_within_budgets(rows, banks, settings)
    tuned, policies = tune_within_budgets(rows, banks, settings, BUDGETS)
    path = safest_first([score for score in judged if (score.kind, score.budget) in tuned], least)
    path = path if settings.promise == "harm" else path[::-1]
    ladder = Ladder(
        name="thresholds",
        steps=tuple(tuned[score.kind, score.budget] for score in path),
        hurts_chosen_on=tuple(score.hurts for score in path),
        testing=testing,
        chosen_on=len(set(rows.clusters)),
    )
    return PathSearch(ladder=ladder, judged=tuple(judged), policies=policies)


def agreement_ladder(testing: Table, banks: Sequence[str], settings: FitSettings) -> Ladder:
    """Agreement of all banks at every threshold: nothing is tuned, so all rows may test it.

    The thresholds are percentiles of the rows' confidences and do not depend on their grades.
    """
    signal = SIGNAL if SIGNAL in settings.signals or not settings.signals else settings.signals[0]
    policy = Policy(signal=signal, sources=tuple(banks), combine="agree")
    kind, replayer = PolicyKind("none", "agree", signal, policy.sources), Replayer(testing)
    policies = threshold_ladder(replayer, policy)
    order = policies if settings.promise == "harm" else policies[::-1]
    return Ladder(
        name="agreement",
        steps=tuple(scored_policy(replayer, step, kind, settings) for step in order),
        hurts_chosen_on=(None,) * len(order),
        testing=testing,
        chosen_on=0,
    )


def own_ladder(
    rows: Table, testing: Table, banks: Sequence[str], settings: FitSettings, prior: Policy | None = None
) -> Ladder:
    """The margins of a value policy that is fitted on the choosing rows."""
    policy = fitted_value(rows, banks, settings, prior).policy
    return _margins("value", policy, Replayer(rows), testing, len(set(rows.clusters)), settings)


def prior_ladder(policy: Policy, testing: Table, settings: FitSettings) -> Ladder:
    """The margins of a value policy that never saw these rows, so all of them may test it."""
    return _margins("prior", policy, Replayer(testing), testing, 0, settings)


def _margins(
    name: LadderName,
    policy: Policy,
    replayer: Replayer,
    testing: Table,
    chosen_on: int,
    settings: FitSettings,
) -> Ladder:
    policies = margin_ladder(policy)
    order = policies if settings.promise == "harm" else policies[::-1]
    kind = PolicyKind(policy.first, name, "", policy.sources)
    return Ladder(
        name=name,
        steps=tuple(scored_policy(replayer, step, kind, settings) for step in order),
        hurts_chosen_on=(None,) * len(order),
        testing=testing,
        chosen_on=chosen_on,
    )


def margin_ladder(policy: Policy) -> tuple[Policy, ...]:
    """A value policy at every margin, safest first."""
    if policy.value is None:
        raise UsageError("a ladder of margins needs a value policy: fit one, or take a prior")
    return tuple(replace(policy, value=replace(policy.value, margin=margin)) for margin in MARGINS)


def threshold_ladder(replayer: Replayer, policy: Policy) -> tuple[Policy, ...]:
    """A policy at thresholds p5…p100 of the first pass's confidence, safest first; without one, always."""
    cuts = [float(cut) for cut in thresholds_of(replayer, policy) if cut > -inf]
    return tuple(replace(policy, threshold=cut) for cut in cuts or [inf])
