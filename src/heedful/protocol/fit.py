"""Choose a policy on the fit side: the only place that tunes anything."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from heedful.errors import UsageError
from heedful.protocol.fit_result import (
    PRIOR,
    THRESHOLD,
    VALUE,
    FamilyFit,
    FitResult,
    HeldOutScore,
    PolicyKind,
    Rank,
    family_name,
    rank_of,
)
from heedful.protocol.policy_grid import PERCENTILES, recipes, thresholds_of
from heedful.protocol.replay import PolicyReplay, Replayer, Scores
from heedful.protocol.study import FAMILIES, FitSettings
from heedful.protocol.table import Floats, Ints, Table, cluster_folds
from heedful.protocol.value_fit import fit_value
from heedful.stages.value import PER_UNIT
from heedful.types import Budget, Policy

LEADERS = 12
"""How many of the best kinds a fit result lists."""
PRIOR_MARGINS = (0.0, 0.05, 0.1, 0.2, 0.3)
NO_LIMIT = 1.0
"""The harm budget of a policy that may hurt every task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedPolicy:
    """A policy with its score on the rows it was tuned on."""

    policy: Policy
    kind: PolicyKind
    objective: float
    calls: float

    @property
    def rank(self) -> Rank:
        return rank_of(self.objective, self.calls, self.kind)


def fit(table: Table, banks: Sequence[str], settings: FitSettings, prior: Policy | None = None) -> FitResult:
    """Choose the kind of policy by cross-validation, then its numbers on all rows of the table.

    `prior` is a value policy that was fitted on other studies.
    """
    scores = cross_validate(table, banks, settings, prior)
    tuned, policies = tune(table, banks, settings, prior)
    best = fit_result(tuned[scores[0].kind], scores[0], scores, policies=policies, rows=len(table))
    return replace(best, families=best_families(scores, tuned))


def best_families(
    scores: Sequence[HeldOutScore], tuned: Mapping[PolicyKind, TunedPolicy]
) -> dict[str, FamilyFit]:
    """The best policy of each family by its held-out score."""
    best: dict[str, FamilyFit] = {}
    for score in sorted(scores, key=lambda score: score.rank):
        family = FamilyFit(policy=tuned[score.kind].policy, kind=score.kind, held_out=score)
        best.setdefault(family_name(score.kind), family)
    return {name: best[name] for name in (THRESHOLD, VALUE, PRIOR) if name in best}


def fit_result(
    chosen: TunedPolicy, score: HeldOutScore, leaders: Sequence[HeldOutScore], *, policies: int, rows: int
) -> FitResult:
    """The chosen policy with its held-out score; `policies` and `rows` say how many there were."""
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


def cross_validate(
    table: Table, banks: Sequence[str], settings: FitSettings, prior: Policy | None = None
) -> list[HeldOutScore]:
    """Every kind of policy, tuned on all folds but one and scored on that fold; best first."""
    totals: dict[PolicyKind, list[Tally]] = {}
    for rest, fold in folds_of(table, settings):
        judge = Replayer(table.rows(fold))
        for kind, tuned in tune(table.rows(rest), banks, settings, prior)[0].items():
            totals.setdefault(kind, []).append(tally_of(judge.replay(tuned.policy)))
    scores = [held_out_score(kind, parts, settings) for kind, parts in totals.items()]
    return sorted(scores, key=lambda score: score.rank)


def tune(
    table: Table, banks: Sequence[str], settings: FitSettings, prior: Policy | None = None
) -> tuple[dict[PolicyKind, TunedPolicy], int]:
    """The best policy of every kind on these rows, and the number of policies scored."""
    best, policies = tune_within_budgets(table, banks, settings, (NO_LIMIT,))
    tuned = {kind: policy for (kind, _), policy in best.items()}
    if VALUE in settings.families and banks:
        fitted = fitted_value(table, banks, settings, prior)
        tuned[fitted.kind] = fitted
        policies += 1
        if prior is not None:
            best_margin = tuned_prior(table, prior, settings)
            tuned[best_margin.kind] = best_margin
            policies += len(PRIOR_MARGINS)
    return tuned, policies


def fitted_value(
    table: Table,
    banks: Sequence[str],
    settings: FitSettings,
    prior: Policy | None = None,
    budget: Budget = Budget(),
) -> TunedPolicy:
    """The value policy over all banks, with its score on the rows it was fitted on."""
    replayer = Replayer(table)
    known = None if prior is None or prior.value is None else prior.value.trees
    policy = fit_value(
        replayer,
        Policy(sources=tuple(banks), budget=budget),
        settings.cost,
        settings.seed,
        unit=settings.unit,
        prior=known,
    )
    return scored_policy(replayer, policy, PolicyKind("none", VALUE, "", tuple(banks)), settings)


def tuned_prior(table: Table, prior: Policy, settings: FitSettings) -> TunedPolicy:
    """The prior with the margin that is best on these rows; nothing else of it is tuned."""
    assert prior.value is not None, "a prior is a value policy"
    replayer, kind = Replayer(table), PolicyKind(prior.first, PRIOR, "", prior.sources)
    choices = [
        scored_policy(replayer, replace(prior, value=replace(prior.value, margin=margin)), kind, settings)
        for margin in PRIOR_MARGINS
    ]
    return min(choices, key=lambda choice: choice.rank)


def scored_policy(replayer: Replayer, policy: Policy, kind: PolicyKind, settings: FitSettings) -> TunedPolicy:
    """A policy with its score on the rows of a replayer."""
    score = score_on(replayer, policy, kind, settings)
    return TunedPolicy(policy=policy, kind=kind, objective=score.objective, calls=score.calls)


def score_on(replayer: Replayer, policy: Policy, kind: PolicyKind, settings: FitSettings) -> HeldOutScore:
    """The score of a policy on rows that it was not tuned on."""
    return held_out_score(kind, [tally_of(replayer.replay(policy))], settings)


def tune_within_budgets(
    table: Table, banks: Sequence[str], settings: FitSettings, budgets: Sequence[float]
) -> tuple[dict[tuple[PolicyKind, float], TunedPolicy], int]:
    """For each kind and budget the best policy within the budget, and the number of policies scored."""
    replayer = Replayer(table)
    best: dict[tuple[PolicyKind, float], TunedPolicy] = {}
    policies = 0
    for recipe in recipes(replayer, banks, settings):
        thresholds = thresholds_of(replayer, recipe.policy)
        scores = replayer.sweep(recipe.policy, thresholds)
        policies += len(thresholds)
        objective, calls = objective_of(scores, len(table), settings)
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


def threshold_at(replayer: Replayer, signal: str, percentile: int) -> float | None:
    """A percentile of the memory-free pass's confidence; None if it was not measured."""
    confidence = replayer.first_confidence(Policy(signal=signal))
    known = confidence[np.isfinite(confidence)]
    return float(np.percentile(known, percentile)) if len(known) else None


def tune_at(
    replayer: Replayer, banks: Sequence[str], signal: str, threshold: float
) -> dict[PolicyKind, Policy]:
    """For each kind, the policy that is right most often at this threshold; ties go to the cheapest."""
    settings = FitSettings(signals=(signal,), firsts=("none",), calibrated=False)
    best: dict[PolicyKind, tuple[tuple[int, int], Policy]] = {}
    for recipe in recipes(replayer, banks, settings):
        if recipe.policy.sources:
            scores = replayer.sweep(recipe.policy, [threshold])
            rank = (-int(scores.right[0]), int(scores.calls[0]))
            if recipe.kind not in best or rank < best[recipe.kind][0]:
                best[recipe.kind] = rank, replace(recipe.policy, threshold=threshold)
    ordered = sorted(best, key=lambda kind: FAMILIES.index(kind.family))
    return {kind: best[kind][1] for kind in ordered}


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedGate:
    """A gate by one signal, with the percentile of its threshold."""

    policy: Policy
    percentile: int
    accuracy: float
    """On the rows it was tuned on."""


def tune_gate(replayer: Replayer, banks: Sequence[str], signal: str) -> TunedGate | None:
    """The gate that is right most often, ties to the one that consults least; None without a threshold."""
    best: tuple[tuple[int, int], TunedGate] | None = None
    for bank in banks:
        policy = Policy(signal=signal, sources=(bank,))
        thresholds = thresholds_of(replayer, policy)
        if len(thresholds) < len(PERCENTILES):
            continue
        scores = replayer.sweep(policy, thresholds)
        for place, percentile in enumerate(PERCENTILES):
            rank = (-int(scores.right[place]), int(scores.calls[place]))
            if best is None or rank < best[0]:
                gate = replace(policy, threshold=float(thresholds[place]))
                accuracy = int(scores.right[place]) / len(replayer.table)
                best = rank, TunedGate(policy=gate, percentile=percentile, accuracy=accuracy)
    return None if best is None else best[1]


def objective_of(scores: Scores, n: int, settings: FitSettings) -> tuple[Floats, Floats]:
    """Accuracy − λ·cost (eq. 1), and calls per task."""
    spent = scores.calls if settings.unit == "calls" else scores.tokens / PER_UNIT[settings.unit]
    return np.asarray(scores.right / n - settings.cost * (spent / n)), np.asarray(scores.calls / n)


def folds_of(table: Table, settings: FitSettings) -> Iterator[tuple[Ints, Ints]]:
    """For each fold, the rows outside and inside it; the rows of a cluster stay together."""
    if len(set(table.clusters)) < 2:
        raise UsageError("a policy cannot be chosen on fewer than 2 different questions")
    return cluster_folds(table.clusters, settings.folds, np.random.default_rng(settings.seed))


class Tally(NamedTuple):
    """What a policy got right and spent on some rows."""

    right: int
    calls: int
    tokens: int
    rows: int


def tally_of(done: PolicyReplay) -> Tally:
    return Tally(
        right=int(done.right.sum()),
        calls=int(done.calls.sum()),
        tokens=int(done.tokens.sum()),
        rows=len(done.right),
    )


def held_out_score(kind: PolicyKind, parts: Sequence[Tally], settings: FitSettings) -> HeldOutScore:
    right, calls, tokens, n = (sum(part[place] for part in parts) for place in range(4))
    spent = calls if settings.unit == "calls" else tokens / PER_UNIT[settings.unit]
    return HeldOutScore(
        kind=kind, objective=right / n - settings.cost * spent / n, accuracy=right / n, calls=calls / n
    )
