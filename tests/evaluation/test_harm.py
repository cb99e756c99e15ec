"""Harm on the test side, counted against the shared first pass and an independent decode."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heedful.evaluation.arm_results import main_arms
from heedful.evaluation.harm import harm_bound, independent_decode, measure_harm
from heedful.evaluation.study_data import StudyData, read_study_data
from heedful.protocol.workspace import Workspace
from tests.evaluation.making import make_study
from tests.evaluation.recount import recount, rows_of


@pytest.fixture(scope="module")
def data(study: Workspace) -> StudyData:
    return read_study_data(study)


def test_the_bound_is_exact(data: StudyData) -> None:
    reference = np.ones(300, dtype=bool)
    right = reference.copy()
    assert harm_bound(data, reference, right).upper == pytest.approx(1 - 0.05 ** (1 / 300))
    right[0] = False
    one = harm_bound(data, reference, right)
    assert (one.hurts, one.tasks) == (1, 300)
    assert one.upper == pytest.approx(0.0157, abs=1e-4), "1 of 300: at most 1.6%"


def test_hurts_of_every_arm_are_those_of_a_plain_recount(data: StudyData, study: Workspace) -> None:
    harm, rows = measure_harm(data, main_arms(data)), rows_of(study)
    assert harm.reference == "retry"
    for arm in main_arms(data):
        assert harm.of(arm.name).shared.hurts == recount(rows, arm.policy).hurts, arm.name
    assert harm.of("retry").independent is None, "an arm is not compared with itself"


def test_an_independent_decode_charges_the_noise_to_the_first_pass_too(data: StudyData) -> None:
    columns = dict(data.test.table.columns)
    turned = columns["retry"].right.copy()
    turned[:20] = ~turned[:20]
    columns["retry"] = replace(columns["retry"], right=turned)
    other = replace(data, test=type(data.test)(replace(data.test.table, columns=columns)))
    baseline = measure_harm(other, main_arms(other)).of("baseline")
    assert baseline.shared.hurts == 0
    assert baseline.independent is not None
    assert baseline.independent.hurts == int(turned[:20].sum())


def test_a_retry_that_samples_is_not_an_independent_decode_of_the_first_pass(data: StudyData) -> None:
    sampled = replace(
        data.lock, sources={**data.lock.sources, "retry": {"kind": "retry", "temperature": 0.7}}
    )
    assert independent_decode(data) == "retry"
    assert independent_decode(replace(data, lock=sampled)) is None


def test_seeds_of_a_task_count_once(tmp_path: Path) -> None:
    data = read_study_data(make_study(tmp_path / "seeds", n=60, kinds={"rule": "memory"}, seeds=(0, 1)))
    right = np.ones(120, dtype=bool)
    wrong = right.copy()
    wrong[[3, 63]] = False  # one task under both seeds
    bound = harm_bound(data, right, wrong)
    assert (bound.hurts, bound.tasks) == (1, 60)
