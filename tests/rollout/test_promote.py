import pytest

from heedful import UsageError
from heedful.rollout.promote import may_promote
from heedful.rollout.shadow import ShadowReport, shadow_report
from tests.rollout.making import shadow_decision, told


def report(kept: int, helped: int, hurt: int = 0, *, graded: bool = True) -> ShadowReport:
    decisions = [shadow_decision(f"kept {n}", "red", None) for n in range(kept)]
    decisions += [shadow_decision(f"helped {n}", "red", "blue") for n in range(helped)]
    decisions += [shadow_decision(f"hurt {n}", "blue", "red") for n in range(hurt)]
    return shadow_report(decisions, told(decisions, "blue") if graded else {}, "policy")


def test_a_policy_is_promoted_only_if_the_upper_bound_of_harm_is_within_the_limit() -> None:
    good = report(kept=800, helped=150)
    assert good.harm_bound <= 0.02
    promotion = may_promote(good, 0.02)
    assert (promotion.allowed, promotion.grades_needed) == (True, 0)
    assert "within the limit of 2.00%" in promotion.reason
    assert not may_promote(good, good.harm_bound / 2).allowed


def test_no_hurt_so_far_is_not_enough() -> None:
    promotion = may_promote(report(kept=80, helped=20), 0.02)
    assert not promotion.allowed
    assert (promotion.grades_needed or 0) > 50
    assert f"{promotion.grades_needed} further graded changes" in promotion.reason
    assert "0 of them are recorded" in promotion.reason


def test_recorded_changes_that_wait_for_a_grade_are_named() -> None:
    promotion = may_promote(report(kept=800, helped=150, graded=False), 0.02)
    assert f"{min(150, promotion.grades_needed or 0)} of them are recorded" in promotion.reason


def test_one_change_that_waits_is_named_in_the_singular() -> None:
    promotion = may_promote(report(kept=80, helped=1, graded=False), 0.0201)
    assert "1 of them is recorded and waits for a grade" in promotion.reason


def test_a_policy_that_hurts_often_is_refused_whatever_is_graded() -> None:
    promotion = may_promote(report(kept=100, helped=50, hurt=50), 0.02)
    assert (promotion.allowed, promotion.grades_needed) == (False, None)
    assert "more grades will not settle it" in promotion.reason


def test_a_policy_that_changes_hardly_anything_needs_no_grade() -> None:
    assert may_promote(report(kept=2000, helped=2, graded=False), 0.02).allowed


@pytest.mark.parametrize("limit", [0.0, 1.0])
def test_a_limit_without_meaning_is_refused(limit: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        may_promote(report(kept=1, helped=1), limit)
