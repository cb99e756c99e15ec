"""The lock holds the best threshold policy and the value policy; the report shows both."""

from dataclasses import replace

import pytest

from heedful.evaluation.families import compare_families
from heedful.evaluation.study_data import StudyData, read_study_data
from heedful.protocol.fit_result import HarmCertificate, HarmTest
from heedful.protocol.workspace import Workspace
from heedful.types import Policy


@pytest.fixture(scope="module")
def data(study: Workspace) -> StudyData:
    return read_study_data(study)


def test_a_fit_without_the_family_value_has_a_threshold_policy_only(data: StudyData) -> None:
    (family,) = compare_families(data)
    assert (family.name, family.locked, family.certified_limit) == ("threshold", True, None)
    assert family.arm.policy == data.lock.policy
    assert family.held_out == pytest.approx(data.lock.fit.leaders[0].accuracy)


def test_an_early_lock_shows_the_policies_that_it_holds(data: StudyData) -> None:
    fitted = replace(data.lock.fit, families={})
    test = HarmTest(
        policy=fitted.policy, objective=0.5, hurts_chosen_on=0, hurts=0, p_value=0.01, certified=True
    )
    certificate = HarmCertificate(limit=0.02, confidence=0.95, chosen_on=120, tested_on=180, path=(test,))
    unlimited = replace(fitted, policy=Policy(first="exemplar"))
    limited = replace(fitted, certificate=certificate, unlimited=unlimited)
    early = replace(data, lock=replace(data.lock, fit=limited))
    free, certified = compare_families(early)
    assert (free.name, free.certified_limit, free.locked) == ("threshold", None, False)
    assert (certified.name, certified.certified_limit, certified.locked) == (
        "threshold-certified",
        0.02,
        True,
    )


def test_a_baseline_that_was_chosen_because_nothing_passed_has_no_certified_limit(data: StudyData) -> None:
    fitted = replace(data.lock.fit, families={}, policy=Policy())
    certificate = HarmCertificate(limit=0.02, confidence=0.95, chosen_on=120, tested_on=180, path=())
    early = replace(data, lock=replace(data.lock, fit=replace(fitted, certificate=certificate)))
    (family,) = compare_families(early)
    assert (family.certified_limit, family.arm.paired.hurts) == (None, 0)
