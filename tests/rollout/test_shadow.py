"""The report on a shadow, from decisions and feedback alone."""

from dataclasses import replace

import pytest

from heedful import UsageError
from heedful.feedback import grade_feedback, preference_feedback
from heedful.rollout.shadow import grades_needed, shadow_report
from tests.rollout.making import shadow_decision, told

KEPT = [shadow_decision(f"kept {n}", "red", None) for n in range(16)]
HELPED = [shadow_decision(f"helped {n}", "red", "blue") for n in range(3)]
HURT = [shadow_decision("hurt", "blue", "red")]
EVERY = [*KEPT, *HELPED, *HURT]


def test_the_report_counts_changes_helps_and_hurts() -> None:
    report = shadow_report(EVERY, told(EVERY, "blue"), "policy")
    assert (report.answers, report.changed.value, report.consulted.value) == (20, 0.2, 0.2)
    assert (report.graded, report.undecided) == (4, 0)
    assert (report.helps.value, report.hurts.value) == (0.75, 0.25)
    assert report.helps.low < 0.75 < report.helps.high
    assert [change.effect for change in report.changes] == [1.0, 1.0, 1.0, -1.0]
    assert (report.changes[-1].first, report.changes[-1].memory) == ("blue", "red")


def test_the_cost_is_what_the_second_passes_add() -> None:
    cost = shadow_report(EVERY, {}, "policy").cost
    assert cost.calls.value == pytest.approx(0.2)
    assert cost.tokens.value == pytest.approx(4.0)
    assert cost.seconds.value == pytest.approx(0.2)
    assert cost.calls.low < 0.2 < cost.calls.high


def test_without_grades_every_changed_answer_may_be_hurt() -> None:
    report = shadow_report(EVERY, {}, "policy")
    assert (report.graded, report.undecided, report.helps, report.hurts) == (0, 4, None, None)
    assert report.changed.high < report.harm_bound < 1.0


def test_a_grade_of_the_first_answer_says_nothing_about_the_other() -> None:
    graded = {one.id: [grade_feedback(one, True)] for one in EVERY}
    assert shadow_report(EVERY, graded, "policy").graded == 0


@pytest.mark.parametrize(("preferred", "effect"), [("memory", 1.0), ("first", -1.0), ("tie", 0.0)])
def test_a_preference_is_an_effect(preferred: str, effect: float) -> None:
    given = {HURT[0].id: [preference_feedback(HURT[0], preferred)]}
    assert [one.effect for one in shadow_report(HURT, given, "policy").changes] == [effect]


def test_equal_answers_are_no_change() -> None:
    same = [shadow_decision("same", "blue", "Blue.")]
    report = shadow_report(same, told(same, "blue"), "policy")
    assert (report.changes, report.changed.value, report.consulted.value) == ((), 0.0, 1.0)


def test_a_question_counts_once_and_its_known_effect_is_not_lost() -> None:
    again = [replace(HURT[0], id=f"again {n}", at=float(n)) for n in range(3)]
    report = shadow_report(again, told(again[1:2], "blue"), "policy")
    assert (report.answers, report.repeated, report.graded) == (1, 2, 1)
    assert report.changes[0].decision == "again 1"


def test_other_policies_and_decisions_outside_a_shadow_do_not_count() -> None:
    others = [replace(HELPED[0], policy_id="another"), replace(HELPED[1], assignment=None)]
    assert shadow_report([*KEPT, *others], {}, "policy").answers == 16
    with pytest.raises(UsageError, match="no shadow decision of policy 'unknown'"):
        shadow_report(EVERY, {}, "unknown")


def test_more_grades_lower_the_bound_until_they_settle_it() -> None:
    kept = [shadow_decision(f"kept {n}", "red", None) for n in range(400)]
    helped = [shadow_decision(f"helped {n}", "red", "blue") for n in range(100)]
    bounds, needed = [], []
    for graded in (0, 10, 20):
        report = shadow_report([*kept, *helped], told(helped[:graded], "blue"), "policy")
        bounds.append(report.harm_bound)
        needed.append(grades_needed(report, 0.05) or 0)
    assert bounds == sorted(bounds, reverse=True)
    assert needed[0] == needed[1] + 10 == needed[2] + 20 > 20
    settled = shadow_report([*kept, *helped], told(helped[: needed[0]], "blue"), "policy")
    unsettled = shadow_report([*kept, *helped], told(helped[: needed[0] - 1], "blue"), "policy")
    assert settled.harm_bound <= 0.05 < unsettled.harm_bound


def test_no_number_of_grades_settles_a_policy_that_hurts_too_often() -> None:
    hurt = [shadow_decision(f"hurt {n}", "blue", "red") for n in range(20)]
    report = shadow_report([*KEPT, *hurt], told(hurt, "blue"), "policy")
    assert grades_needed(report, 0.02) is None


def test_a_policy_that_uses_memory_first_is_compared_with_the_pass_that_was_served() -> None:
    plain = shadow_decision("q", "blue", "red")
    assert plain.assignment is not None
    served = replace(plain.candidates[0], record=replace(plain.candidates[0].record, recalls=(), calls=1))
    memory_first = replace(
        plain,
        candidates=(served,),
        chosen=0,
        answer="red",
        calls=2,
        assignment=replace(plain.assignment, accepted=None),
    )
    report = shadow_report([memory_first], told([memory_first], "blue"), "policy")
    [change] = report.changes
    assert (change.first, change.memory, change.effect) == ("red", "blue", 1.0)
    assert report.cost.calls.value == 0.0, "memory in the first pass is no further call"
