"""A promise about harm that holds with a stated confidence (Learn-then-Test, Angelopoulos et al. 2021).

The fit side is split in two. The first part serves every data-driven choice: calibrators, percentile
thresholds, estimators, cross-validation, and the order in which policies will be tested. The second part
serves only the tests: an exact p-value for "the policy breaks the promise" for each policy of a ladder in
its fixed order, stopping at the first that is not rejected. A second ladder shares the error: one that no
grade of the study shaped, of a prior or of agreement, is tested on all rows. Neither the policies nor their
order depend on the grades they are tested on, so the probability that any certified policy breaks the
promise is at most 1 − confidence.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from heedful.decisions import without_trees
from heedful.errors import UsageError
from heedful.protocol.budget_scores import hurts_of
from heedful.protocol.fit import NO_LIMIT, TunedPolicy, fit_result, score_on
from heedful.protocol.fit_result import (
    BASELINE,
    PRIOR,
    THRESHOLD,
    VALUE,
    FamilyFit,
    FitResult,
    HarmCertificate,
    HarmTest,
    HeldOutScore,
    family_name,
)
from heedful.protocol.ladders import Ladder, agreement_ladder, own_ladder, prior_ladder, tuned_path
from heedful.protocol.replay import Replayer
from heedful.protocol.study import FitSettings
from heedful.protocol.table import Ints, Table
from heedful.stats.risk import binomial_p_value, certify_in_order, no_loss_p_value
from heedful.types import Policy

LEAST_TASKS = 5
"""Two choosing tasks and three certifying tasks."""
NOTHING_CERTIFIED = "no policy was certified to keep the harm limit, so the baseline was chosen"
NO_GAIN_CERTIFIED = "no policy was certified not to lose accuracy, so the baseline was chosen"
NOTHING_BETTER = "no policy did better than the baseline on the rows that choose, so none was tested for harm"


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedPolicy:
    """A policy that may be chosen, with its score on rows that no ladder was tuned on."""

    choice: TunedPolicy
    held_out: HeldOutScore
    certificate: HarmCertificate | None = None

    @property
    def family(self) -> FamilyFit:
        limit = None if self.certificate is None else self.certificate.limit
        return FamilyFit(
            policy=self.choice.policy, kind=self.choice.kind, held_out=self.held_out, certified_limit=limit
        )


def fit_within_limit(
    table: Table,
    banks: Sequence[str],
    settings: FitSettings,
    prior: Policy | None = None,
    looked_at: Set[str] = frozenset(),
) -> FitResult:
    """The best policy certified to keep the promise; the baseline if there is none.

    `prior` is a value policy fitted on other studies; `looked_at` are tasks that may not certify it, because
    a bank was refined on them.
    """
    if len(set(table.clusters)) < LEAST_TASKS:
        raise UsageError(
            f"a harm limit needs at least {LEAST_TASKS} different questions on the fit side, and hundreds to "
            "be useful"
        )
    choosing, testing = (table.rows(part) for part in halves(table, settings.seed))
    plain = score_on(Replayer(choosing), Policy(), BASELINE, settings)
    search = tuned_path(choosing, testing, banks, settings, plain.objective)
    by_value = VALUE in settings.families and bool(banks)
    ladders = [own_ladder(choosing, testing, banks, settings, prior) if by_value else search.ladder]
    unseen = _unseen(table, looked_at)
    if by_value and prior is not None:
        ladders.append(prior_ladder(prior, unseen, settings))
    elif _may_agree(banks, settings):
        ladders.append(agreement_ladder(unseen, banks, settings))
    judge = Replayer(testing)
    certificates = [certify(ladder, judge, settings, len(ladders)) for ladder in ladders]
    baseline = _baseline(judge, choosing, settings)
    candidates = [
        CertifiedPolicy(choice=ladder.steps[at], held_out=test.held_out, certificate=certificate)
        for ladder, certificate in zip(ladders, certificates, strict=True)
        if (at := certificate.chosen) is not None and (test := certificate.path[at]).held_out is not None
    ]
    best = min((baseline, *candidates), key=lambda one: one.held_out.rank)
    leaders = sorted((one.held_out for one in search.judged if one.budget == NO_LIMIT), key=lambda s: s.rank)
    own = best.certificate or certificates[0]
    fitted = fit_result(best.choice, best.held_out, leaders, policies=search.policies, rows=len(choosing))
    fitted = replace(
        fitted,
        families=_families(ladders, candidates, baseline),
        notes=() if candidates else (_nothing(certificates, settings),),
        certificate=own,
        further_certificates=tuple(one for one in certificates if one is not own),
    )
    return fitted if fitted.tuned else replace(fitted, objective=fitted.held_out_objective, optimism=0.0)


def certify(ladder: Ladder, judge: Replayer, settings: FitSettings, ladders: int) -> HarmCertificate:
    """Test the policies of a ladder in their order, on rows not used to choose them.

    `judge` has the rows on which policies of all ladders are compared.
    """
    replayer, tasks = Replayer(ladder.testing), len(set(ladder.testing.clusters))
    counts = [(helps_of(replayer, step.policy), hurts_of(replayer, step.policy)) for step in ladder.steps]
    p_values = [_p_value(helps, hurts, tasks, settings) for helps, hurts in counts]
    passed = certify_in_order(p_values, (1 - settings.confidence) / ladders) if p_values else 0
    tests = [
        HarmTest(
            policy=without_trees(step.policy),
            objective=step.objective,
            hurts_chosen_on=chosen_on,
            hurts=hurts,
            p_value=p_value,
            certified=place < passed,
            helps=helps,
            held_out=score_on(judge, step.policy, step.kind, settings),
            margin=None if step.policy.value is None else step.policy.value.margin,
        )
        for place, (step, chosen_on, (helps, hurts), p_value) in enumerate(
            zip(ladder.steps, ladder.hurts_chosen_on, counts, p_values, strict=True)
        )
    ]
    return HarmCertificate(
        limit=settings.harm_limit,
        confidence=settings.confidence,
        chosen_on=ladder.chosen_on,
        tested_on=tasks,
        path=tuple(tests),
        ladder=ladder.name,
        policy=None if ladder.name == "thresholds" else ladder.steps[0].policy,
        ladders=ladders,
    )


def helps_of(replayer: Replayer, policy: Policy) -> int:
    """Clusters in which the policy helps some row and hurts none."""
    right = replayer.replay(policy).right
    pairs = list(zip(replayer.table.clusters, right.astype(int) - replayer.base_right, strict=True))
    hurt = {cluster for cluster, change in pairs if change < 0}
    return len({cluster for cluster, change in pairs if change > 0} - hurt)


def _p_value(helps: int, hurts: int, tasks: int, settings: FitSettings) -> float:
    if settings.harm_limit is None:
        return no_loss_p_value(helps, hurts)
    return binomial_p_value(hurts, tasks, settings.harm_limit)


def _families(
    ladders: Sequence[Ladder], candidates: Sequence[CertifiedPolicy], baseline: CertifiedPolicy
) -> dict[str, FamilyFit]:
    """The best certified policy of each family that was tested, or the baseline."""
    tested = {ladder.name if ladder.name in (VALUE, PRIOR) else THRESHOLD for ladder in ladders}
    return {
        name: min(
            (baseline, *(one for one in candidates if family_name(one.choice.kind) == name)),
            key=lambda one: one.held_out.rank,
        ).family
        for name in sorted(tested)
    }


def _nothing(certificates: Sequence[HarmCertificate], settings: FitSettings) -> str:
    if not any(certificate.path for certificate in certificates):
        return NOTHING_BETTER
    return NOTHING_CERTIFIED if settings.promise == "harm" else NO_GAIN_CERTIFIED


def _baseline(judge: Replayer, choosing: Table, settings: FitSettings) -> CertifiedPolicy:
    """The memory-free policy, which cannot do harm."""
    accuracy = float(choosing.column("none").right.mean())
    choice = TunedPolicy(policy=Policy(), kind=BASELINE, objective=accuracy - settings.cost, calls=1.0)
    return CertifiedPolicy(choice=choice, held_out=score_on(judge, Policy(), BASELINE, settings))


def _may_agree(banks: Sequence[str], settings: FitSettings) -> bool:
    """Whether the study lets two banks overrule a memory-free first pass."""
    first = settings.firsts is None or "none" in settings.firsts
    return first and "agree" in settings.families and len(banks) > 1


def _unseen(table: Table, looked_at: Set[str]) -> Table:
    """The rows of a table without the clusters of these tasks."""
    seen = {cluster for task, cluster in zip(table.tasks, table.clusters, strict=True) if task in looked_at}
    return table.rows([row for row, cluster in enumerate(table.clusters) if cluster not in seen])


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
    return table if not settings.certifies else table.rows(halves(table, settings.seed)[0])
