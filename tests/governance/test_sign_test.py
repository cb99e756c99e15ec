"""The sign test against its definition, and Benjamini–Hochberg against the worked rule."""

import pytest

from heedful.governance.sign_test import benjamini_hochberg, least_turned, sign_p_value


def test_the_p_value_is_the_binomial_tail() -> None:
    assert sign_p_value(0, 5) == 1 / 32
    assert sign_p_value(1, 5) == pytest.approx((6 + 1) / 64)
    assert sign_p_value(5, 0) == 1
    assert sign_p_value(0, 0) == 1
    assert sign_p_value(200, 300) < 1e-5


@pytest.mark.parametrize(("delta", "least"), [(0.05, 5), (0.025, 6), (0.5, 1)])
def test_fewer_turned_answers_can_condemn_nobody(delta: float, least: int) -> None:
    assert least_turned(delta) == least
    assert sign_p_value(0, least) <= delta < sign_p_value(0, least - 1)


def test_benjamini_hochberg_rejects_up_to_the_last_value_under_its_line() -> None:
    assert benjamini_hochberg([0.04, 0.001, 0.03, 0.5], 0.05) == [False, True, False, False]
    assert benjamini_hochberg([0.03, 0.001, 0.03, 0.04], 0.05) == [True] * 4
    assert benjamini_hochberg([], 0.05) == []
    assert benjamini_hochberg([0.2], 0.05) == [False]
