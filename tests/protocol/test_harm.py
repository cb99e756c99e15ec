"""A harm limit holds, or nothing is chosen."""

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray
from scipy.special import expit

from heedful.protocol.budget_scores import BudgetScore, expected_hurts, hurts_of
from heedful.protocol.fit import Tally, held_out_score
from heedful.protocol.fit_result import BASELINE, PolicyKind
from heedful.protocol.harm import certify, fit_within_limit, halves
from heedful.protocol.ladders import agreement_ladder
from heedful.protocol.replay import Replayer, features
from heedful.protocol.study import FitSettings
from heedful.protocol.table import Column, Table, make_column
from heedful.protocol.value_fit import fit_value
from heedful.stats.risk import binomial_p_value
from heedful.types import Calibrator, Policy
from tests.protocol.worlds import column, table, world

HARM = FitSettings(
    signals=("mean",),
    families=("gate", "choose"),
    calibrated=False,
    folds=2,
    firsts=("none",),
    harm_limit=0.05,
    cost=0.0,
)


def test_a_harmless_bank_is_certified_and_a_harmful_one_is_not() -> None:
    rng = np.random.default_rng(7)
    good = fit_within_limit(world(rng, 600, help_rate=0.4, hurt_rate=0.005, telling=0.3), ["bank"], HARM)
    assert good.policy.sources == ("bank",)
    assert good.certificate.path[0].certified
    bad = fit_within_limit(world(rng, 600, help_rate=0.1, hurt_rate=1.0, telling=0.0), ["bank"], HARM)
    assert bad.kind == BASELINE
    assert not any(one.certified for one in bad.certificate.path[1:])


def test_when_nothing_can_be_certified_the_baseline_is_chosen_and_said() -> None:
    rng = np.random.default_rng(10)
    few = world(rng, 60, help_rate=0.4, hurt_rate=0.0, telling=0.3)
    fitted = fit_within_limit(few, ["bank"], replace(HARM, harm_limit=0.01))
    assert fitted.kind == BASELINE
    assert "baseline was chosen" in fitted.notes[0]
    assert fitted.certificate.path[0].hurts == 0, "36 rows without harm are too few to certify 1%"


def test_the_rows_that_choose_are_not_the_rows_that_test() -> None:
    rng = np.random.default_rng(8)
    rows = world(rng, 300, help_rate=0.3, hurt_rate=0.02, telling=0.3)
    fitted = fit_within_limit(rows, ["bank"], HARM)
    certificate = fitted.certificate
    assert certificate.chosen_on + certificate.tested_on == 300
    assert fitted.rows == certificate.chosen_on
    testing = halves(rows, HARM.seed)[1]
    spoiled = {
        name: make_column(c.passes, [bool(right) != (at in testing) for at, right in enumerate(c.right)])
        for name, c in rows.columns.items()
    }
    turned = Table(tasks=rows.tasks, seeds=rows.seeds, columns=spoiled)
    other = fit_within_limit(turned, ["bank"], HARM).certificate
    assert certificate.path
    assert [one.policy for one in other.path] == [one.policy for one in certificate.path]
    assert [one.hurts for one in other.path] != [one.hurts for one in certificate.path]


def test_a_kind_without_hurts_is_trusted_less_among_like_kinds_that_have_many() -> None:
    def judged(family: str, signal: str, hurts: int, changes: int) -> BudgetScore:
        kind = PolicyKind("none", family, signal, ("bank",))
        return BudgetScore(
            kind=kind,
            budget=0.0,
            held_out=held_out_score(kind, [Tally(50, 100, 0, 100)], FitSettings()),
            hurts=hurts,
            changes=changes,
        )

    lucky, *others = [
        judged("gate", "mean", 0, 20),
        judged("gate", "min", 8, 20),
        judged("gate", "sum", 6, 20),
    ]
    careful = [judged("agree", signal, 0, 20) for signal in ("mean", "min", "sum")]
    timid = judged("gate", "p10", 0, 2)
    found = dict(
        zip(
            ["lucky", "careful", "timid"],
            expected_hurts([lucky, careful[0], timid, *others, *careful[1:]]),
            strict=False,
        )
    )
    assert found["careful"] < found["lucky"]
    assert found["timid"] < found["lucky"], "fewer changes, less harm to expect"


def test_seeds_of_a_task_count_once_in_the_certificate() -> None:
    rng = np.random.default_rng(12)
    rows = world(rng, 120, help_rate=0.4, hurt_rate=0.0, telling=0.3)
    thrice = Table(tasks=rows.tasks[:40] * 3, seeds=(0,) * 40 + (1,) * 40 + (2,) * 40, columns=rows.columns)
    certificate = fit_within_limit(thrice, ["bank"], HARM).certificate
    assert certificate.chosen_on + certificate.tested_on == 40
    assert all(one.p_value >= 0.95**24 - 1e-9 for one in certificate.path), "24 tasks without harm"


VALUE = replace(HARM, families=("value",), cost=0.01)


def prior_of(seed: int) -> Policy:
    rows = world(np.random.default_rng(seed), 150, help_rate=0.4, hurt_rate=0.1, telling=0.3)
    return fit_value(Replayer(rows), Policy(sources=("bank",)), cost=0.01, seed=0)


def test_a_value_policy_is_certified_on_rows_that_it_was_not_fitted_on() -> None:
    rows = world(np.random.default_rng(3), 500, help_rate=0.4, hurt_rate=0.05, telling=0.4)
    fitted = fit_within_limit(rows, ["bank"], VALUE)
    certificate = fitted.certificate
    assert fitted.kind.family == "value"
    assert certificate is not None
    assert (certificate.ladder, certificate.chosen_on, certificate.tested_on) == ("value", 200, 300)
    at = certificate.chosen
    assert at is not None
    assert fitted.policy == certificate.policy_at(at), "the boldest certified margin"
    assert all(test.policy.value is None for test in certificate.path), "the trees are stored once"
    assert fitted.families["value"].certified_limit == 0.05


def test_a_prior_is_certified_on_all_rows_that_no_bank_was_refined_on() -> None:
    rows = world(np.random.default_rng(3), 200, help_rate=0.4, hurt_rate=0.05, telling=0.4)
    seen = set(rows.tasks[:30])
    fitted = fit_within_limit(rows, ["bank"], VALUE, prior_of(4), seen)
    own, prior = sorted(fitted.certificates, key=lambda one: one.tested_on)
    assert (own.ladder, own.tested_on, own.ladders) == ("value", 120, 2)
    assert (prior.ladder, prior.chosen_on, prior.tested_on) == ("prior", 0, 170)


def test_ladders_share_the_error() -> None:
    rows = world(np.random.default_rng(5), 150, help_rate=0.4, hurt_rate=0.0, telling=0.4)
    both = fit_within_limit(rows, ["bank"], replace(VALUE, harm_limit=0.04), prior_of(4))
    alone = fit_within_limit(rows, ["bank"], replace(VALUE, harm_limit=0.04))
    assert [one.ladders for one in both.certificates] == [2, 2]
    assert alone.certificate is not None
    assert alone.certificate.path[0].hurts == 0, "90 rows without harm: p = 0.0254"
    assert alone.certificate.path[0].certified
    first = next(one.path[0] for one in both.certificates if one.ladder == "value")
    assert (first.hurts, first.certified) == (0, False), "p = 0.0254 is above half of the error"


def two_banks(rng: np.random.Generator, n: int, hurt_rate: float) -> Table:
    """Two banks that are wrong independently of each other; wrong answers are alike."""
    one = world(rng, n, help_rate=0.4, hurt_rate=hurt_rate, telling=0.3)
    base = one.column("none").right
    right = np.where(base, rng.random(n) >= hurt_rate, rng.random(n) < 0.4)
    confidence = -0.8 + 0.2 * rng.normal(size=n)
    other = column("other", right, confidence)
    return Table(tasks=one.tasks, seeds=one.seeds, columns={**one.columns, "other": other})


AGREE = replace(HARM, families=("gate", "agree"), harm_limit=0.03)


def test_agreement_of_all_banks_is_tested_on_all_rows() -> None:
    rows = two_banks(np.random.default_rng(14), 300, 0.05)
    fitted = fit_within_limit(rows, ["bank", "other"], AGREE)
    ladders = {one.ladder: one for one in fitted.certificates}
    assert set(ladders) == {"thresholds", "agreement"}
    agreement = ladders["agreement"]
    assert (agreement.chosen_on, agreement.tested_on, agreement.ladders) == (0, 300, 2)
    assert {test.policy.sources for test in agreement.path} == {("bank", "other")}
    assert agreement.chosen is not None


def test_a_study_without_the_family_agree_has_one_ladder() -> None:
    rows = two_banks(np.random.default_rng(14), 300, 0.05)
    fitted = fit_within_limit(rows, ["bank", "other"], HARM)
    assert [(one.ladder, one.ladders) for one in fitted.certificates] == [("thresholds", 1)]


@pytest.mark.slow
def test_thresholds_from_the_tested_rows_keep_the_limit_because_grades_do_not_shape_them() -> None:
    """Agreement harms 3.75% at the last threshold, so some threshold is just above the limit of 3%."""
    assert AGREE.harm_limit is not None
    rng, banks, studies = np.random.default_rng(15), ["bank", "other"], 400
    big = Replayer(two_banks(rng, 20_000, 0.25))
    broken, used = 0, 0
    for _ in range(studies):
        rows = two_banks(rng, 250, 0.25)
        certificate = certify(agreement_ladder(rows, banks, AGREE), Replayer(rows), AGREE, 1)
        if certificate.chosen is not None:
            policy = certificate.path[certificate.chosen].policy
            used += 1
            broken += int(big.sweep(policy, [policy.threshold]).hurts[0]) / 20_000 > AGREE.harm_limit
    assert broken / studies <= 0.05 + 3 * (0.05 * 0.95 / studies) ** 0.5
    assert used / studies > 0.5


def test_no_loss_is_certified_where_a_strict_harm_limit_is_not() -> None:
    rows = world(np.random.default_rng(6), 300, help_rate=0.5, hurt_rate=0.08, telling=0.2)
    strict = replace(HARM, harm_limit=0.005)
    assert fit_within_limit(rows, ["bank"], strict).kind == BASELINE
    fitted = fit_within_limit(rows, ["bank"], replace(HARM, harm_limit=None, promise="no-loss"))
    certificate = fitted.certificate
    assert certificate is not None
    assert certificate.limit is None
    assert certificate.chosen == 0, "the boldest policy is tested first"
    assert fitted.policy == certificate.path[0].policy
    assert fitted.families["threshold"].certified_limit is None


def test_a_bank_that_gains_nothing_is_not_certified_to_lose_nothing() -> None:
    rows = world(np.random.default_rng(8), 300, help_rate=0.1, hurt_rate=0.1, telling=0.0)
    fitted = fit_within_limit(rows, ["bank"], replace(HARM, harm_limit=None, promise="no-loss"))
    assert fitted.kind == BASELINE
    assert "baseline was chosen" in fitted.notes[0] or "none was tested" in fitted.notes[0]


class QuickReplayer(Replayer):
    """Calibrates in arrays: a rate over 20,000 rows does not depend on the last bit."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.known: dict[tuple[int, int], dict[str, NDArray[np.float64]]] = {}

    def _confidence(
        self, signal: str, column: Column, first: Column | None, calibrator: Calibrator | None
    ) -> NDArray[np.float64]:
        if calibrator is None:
            return super()._confidence(signal, column, first, calibrator)
        values = self.features(column, first)
        seen = np.maximum(np.column_stack([values[name] for name in calibrator.features]), calibrator.floors)
        z = calibrator.bias + ((seen - calibrator.means) / calibrator.scales) @ np.array(calibrator.weights)
        return expit(z)

    def features(self, column: Column, first: Column | None) -> dict[str, NDArray[np.float64]]:
        if (id(column), id(first)) not in self.known:
            rows = features(column, first)
            self.known[id(column), id(first)] = {
                name: np.array([row[name] for row in rows]) for name in rows[0]
            }
        return self.known[id(column), id(first)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("studies", "settings"),
    [(800, HARM), (150, replace(HARM, calibrated=True, firsts=None))],
    ids=["thresholds", "calibrators and memory first"],
)
def test_the_harm_limit_is_broken_in_at_most_one_study_of_twenty(studies: int, settings: FitSettings) -> None:
    """Synthetic studies whose risky policies harm just around the limit."""
    assert HARM.harm_limit is not None
    rng = np.random.default_rng(9)
    broken, used = 0, 0
    big = QuickReplayer(world(rng, 20_000, help_rate=0.3, hurt_rate=0.12, telling=0.25))
    for _ in range(studies):
        rows = world(rng, 250, help_rate=0.3, hurt_rate=0.12, telling=0.25)
        fitted = fit_within_limit(rows, ["bank"], settings)
        if fitted.kind != BASELINE:
            hurts = hurts_of(big, fitted.policy)
            assert used or hurts == hurts_of(Replayer(big.table), fitted.policy)
            used += 1
            broken += hurts / 20_000 > HARM.harm_limit
    allowed = 0.05 + 3 * (0.05 * 0.95 / studies) ** 0.5
    assert broken / studies <= allowed
    assert used / studies > 0.2, "the limit must not be kept by never using memory"


def repeated(rows: Table, copies: int, *, clustered: bool) -> Table:
    """Every question several times under different ids."""
    several = rows.rows(np.tile(np.arange(len(rows)), copies))
    names = tuple(f"{task}-{place}" for place, task in enumerate(several.tasks))
    clusters = dict(zip(names, several.tasks, strict=True)) if clustered else {}
    return Table(tasks=names, seeds=several.seeds, columns=several.columns, cluster_of=clusters)


def test_copies_of_a_question_are_on_one_half_and_count_once() -> None:
    rng = np.random.default_rng(13)
    rows = repeated(world(rng, 100, help_rate=0.4, hurt_rate=0.05, telling=0.3), 3, clustered=True)
    choosing, certifying = ({rows.clusters[at] for at in part} for part in halves(rows, HARM.seed))
    assert (len(choosing), len(certifying), len(choosing & certifying)) == (40, 60, 0)
    certificate = fit_within_limit(rows, ["bank"], HARM).certificate
    assert certificate is not None
    assert (certificate.chosen_on, certificate.tested_on) == (40, 60)


def violations(copies: int, studies: int, *, clustered: bool) -> float:
    """The share of studies whose certified policy breaks the limit, if every question is asked repeatedly."""
    rng = np.random.default_rng(14)
    settings = replace(HARM, families=("gate",))
    big = Replayer(world(rng, 20_000, help_rate=0.9, hurt_rate=0.1, telling=0.0))
    broken = 0
    for _ in range(studies):
        rows = world(rng, 250 // copies, help_rate=0.9, hurt_rate=0.1, telling=0.0)
        fitted = fit_within_limit(repeated(rows, copies, clustered=clustered), ["bank"], settings)
        broken += hurts_of(big, fitted.policy) / 20_000 > 0.05
    return broken / studies


@pytest.mark.slow
@pytest.mark.parametrize("copies", [2, 3, 5])
def test_the_harm_limit_holds_when_every_question_is_asked_repeatedly(copies: int) -> None:
    """250 rows of 250 / copies questions."""
    assert violations(copies, 200, clustered=True) <= 0.05


@pytest.mark.slow
def test_the_harm_limit_breaks_if_copies_of_a_question_count_as_different_questions() -> None:
    assert violations(5, 200, clustered=False) > 0.08


@pytest.mark.parametrize(("copies", "expected"), [(2, 0.126), (3, 0.118), (5, 0.192)])
def test_a_policy_at_the_limit_is_certified_in_one_study_of_twenty_only_with_clusters(
    copies: int, expected: float
) -> None:
    """Memory hurts 5% of questions, the limit; without clusters the binomial tail gives `expected`."""
    rng = np.random.default_rng(15)
    questions, studies = 300 // copies, 150
    certified = {True: 0, False: 0}
    for _ in range(studies):
        base, bank = np.ones(questions, dtype=bool), rng.random(questions) >= 0.05
        sure = np.zeros(questions)
        rows = table(none=column("none", base, sure), bank=column("bank", bank, sure))
        for clustered in certified:
            judge = Replayer(repeated(rows, copies, clustered=clustered))
            tasks = len(set(judge.table.clusters))
            certified[clustered] += (
                binomial_p_value(hurts_of(judge, Policy(first="bank")), tasks, 0.05) <= 0.05
            )
    assert certified[True] / studies <= 0.05 + 3 * (0.05 * 0.95 / studies) ** 0.5
    assert abs(certified[False] / studies - expected) < 3 * (expected * (1 - expected) / studies) ** 0.5
