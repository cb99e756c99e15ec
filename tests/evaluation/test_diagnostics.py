"""Sweeps, separability, bins, coverage and entries, counted again by hand."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from heedful.arms import gate
from heedful.evaluation.arms import PairedChange
from heedful.evaluation.evaluate import Evaluation, evaluate
from heedful.evaluation.study_data import read_study_data
from heedful.protocol.policy_grid import PERCENTILES
from heedful.protocol.workspace import Workspace
from tests.evaluation.recount import Rows, recount, rows_of


@pytest.fixture(scope="module")
def rows(study: Workspace) -> Rows:
    return rows_of(study)


@pytest.fixture(scope="module")
def fit_rows(study: Workspace) -> Rows:
    return rows_of(study, "fit")


@pytest.fixture(scope="module")
def evaluation(study: Workspace) -> Evaluation:
    return evaluate(read_study_data(study))


def decoded(rows: Rows, bank: str) -> Rows:
    return [passes for passes in rows if passes[bank].record.status == "decoded"]


def test_separability_is_the_share_of_pairs_in_which_the_help_is_surer(
    evaluation: Evaluation, rows: Rows
) -> None:
    found = next(one for one in evaluation.separability if (one.bank, one.scope) == ("rule", "all rows"))
    changed = [p for p in decoded(rows, "rule") if p["rule"].right != p["none"].right]
    second: dict[bool, list[float]] = {True: [], False: []}
    gain: dict[bool, list[float]] = {True: [], False: []}
    for passes in changed:
        c, c2 = (passes[name].record.signals["mean"] for name in ("none", "rule"))
        second[passes["rule"].right].append(c2)
        gain[passes["rule"].right].append(c2 - c)
    assert (found.helps, found.hurts) == (len(second[True]), len(second[False]))
    for values, interval in ((second, found.second), (gain, found.gain)):
        pairs = [(a > b) + (a == b) / 2 for a in values[True] for b in values[False]]
        assert interval.value == pytest.approx(np.mean(pairs))
        assert interval.low < interval.value < interval.high


def test_the_signal_sweep_takes_the_best_gate_of_the_fit_side_and_tests_it(
    evaluation: Evaluation, rows: Rows, fit_rows: Rows
) -> None:
    found = next(one for one in evaluation.signals if one.signal == "mean")
    known = [passes["none"].record.signals["mean"] for passes in fit_rows]
    best = max(
        recount(fit_rows, gate(bank, float(np.percentile(known, percentile)))).right
        for bank in ("rule", "exemplar")
        for percentile in PERCENTILES[:-1]
    )
    assert found.fit_accuracy >= best / len(fit_rows)
    tested = recount(rows, found.arm.policy)
    assert found.arm.accuracy.value == pytest.approx(tested.right / tested.n)
    assert recount(fit_rows, found.arm.policy).right == round(found.fit_accuracy * len(fit_rows))


def test_the_locked_threshold_is_a_point_of_its_own_sweep(evaluation: Evaluation, rows: Rows) -> None:
    sweep = evaluation.thresholds
    assert sweep.chosen.accuracy == evaluation.heedful.accuracy
    assert sweep.chosen.threshold in [point.threshold for point in sweep.points]
    for point in sweep.points[::5]:
        moved = recount(rows, replace(evaluation.lock.policy, threshold=point.threshold))
        assert point.accuracy.value == pytest.approx(moved.right / moved.n)
        assert point.calls == pytest.approx(moved.calls / moved.n)


def test_bins_hold_every_row_once_and_rise_in_confidence(evaluation: Evaluation, rows: Rows) -> None:
    bins = evaluation.bins
    assert [one.right["baseline"].n for one in bins] == [30] * 10
    assert all(one.high <= other.low for one, other in pairwise(bins))
    for name, source in (("baseline", "none"), ("always-rule", "rule")):
        right = sum(
            (passes[source] if passes[source].record.status == "decoded" else passes["none"]).right
            for passes in rows
        )
        assert sum(one.right[name].value * one.right[name].n for one in bins) == pytest.approx(right)


def test_coverage_ends_at_the_accuracy_of_the_baseline(evaluation: Evaluation, rows: Rows) -> None:
    assert evaluation.coverage[-1].accuracy == evaluation.baseline.accuracy
    surest = sorted(rows, key=lambda passes: -passes["none"].record.signals["mean"])[:30]
    assert evaluation.coverage[0].accuracy.value == np.mean([passes["none"].right for passes in surest])


def test_entries_are_weighed_by_the_rows_that_recalled_them(evaluation: Evaluation, rows: Rows) -> None:
    for effects in evaluation.entries:
        moved = [abs(one.net) for one in effects.shown]
        assert moved == sorted(moved, reverse=True)
        for one in effects.shown:
            mine = [
                passes
                for passes in decoded(rows, one.bank)
                if one.entry in {seen.entry for seen in passes[one.bank].record.recalls}
            ]
            assert one.rows == len(mine)
            assert one.helps == sum(p[one.bank].right and not p["none"].right for p in mine)
            assert one.hurts == sum(p["none"].right and not p[one.bank].right for p in mine)


def test_platt_scaling_is_fitted_on_the_fit_side_and_measured_on_the_test_side(
    evaluation: Evaluation, rows: Rows
) -> None:
    for one in evaluation.calibration:
        given = decoded(rows, one.source)
        assert one.raw.measured.n == len(given)
        errors = [(np.exp(p[one.source].record.signals["mean"]) - p[one.source].right) ** 2 for p in given]
        assert one.raw.brier.value == pytest.approx(np.mean(errors))
        assert one.raw.measured.brier == pytest.approx(np.mean(errors))
        assert one.raw.nll.value == pytest.approx(one.raw.measured.nll)
        assert one.platt.measured.nll < one.raw.measured.nll


def test_stages_follow_on_each_other(evaluation: Evaluation) -> None:
    stages = evaluation.isolation.stages
    assert [stage.name for stage in stages] == ["gate", "choose", "multibank"]
    assert [stage.before for stage in stages] == ["baseline", stages[0].arm.name, stages[1].arm.name]
    for stage, before in zip(stages[1:], stages, strict=False):
        gained = stage.arm.accuracy.value - before.arm.accuracy.value
        assert stage.paired.delta.value == pytest.approx(gained)


def test_equal_answers_get_equal_intervals(evaluation: Evaluation) -> None:
    by_answers: dict[bytes, list[PairedChange]] = {}
    for arm in evaluation.every_arm:
        by_answers.setdefault(arm.right.tobytes(), []).append(arm.paired)
    for same in by_answers.values():
        assert all(paired == same[0] for paired in same)
