import pytest

from heedful import UsageError
from heedful.governance.judge import judge, judge_entries, require_rule


def test_a_judgement_has_the_number_of_its_rule_and_says_it() -> None:
    by_sign = judge([-1.0] * 6 + [0.0], "sign", 0.05)
    assert (by_sign.condemned, by_sign.bound, by_sign.p_value) == (True, None, 1 / 64)
    assert by_sign.reason == "sign: mean utility -0.86 over 7 tasks (0 helps, 6 hurts), p = 0.016"
    by_bound = judge([-1.0] * 6, "betting", 0.025)
    assert by_bound.p_value is None
    assert by_bound.bound is not None
    assert by_bound.bound < 0
    assert "with 97.5% confidence" in by_bound.reason


def test_nothing_seen_condemns_nobody() -> None:
    assert not any(judge([], rule, 0.05).condemned for rule in ("sign", "betting", "hoeffding"))


def test_the_sign_test_of_entries_allows_for_their_number() -> None:
    guilty, others = [-1.0] * 6, [[1.0, -1.0] * 3] * 9
    assert judge_entries([guilty], "sign", 0.05)[0].condemned
    assert not judge_entries([guilty, *others], "sign", 0.05)[0].condemned
    assert judge_entries([guilty, *others], "betting", 0.05)[0].condemned, "each entry has its own error"


def test_entries_that_cannot_be_condemned_cost_the_others_nothing() -> None:
    guilty, silent = [-1.0] * 6, [[1.0, -1.0, 0.0, 0.0]] * 50
    assert [one.condemned for one in judge_entries([*silent, guilty], "sign", 0.05)] == [False] * 50 + [True]


def test_an_unknown_rule_is_a_users_mistake() -> None:
    with pytest.raises(UsageError, match="no retirement rule 'luck'; choose from sign, betting"):
        require_rule("luck")
