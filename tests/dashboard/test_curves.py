"""Histogram, risk and coverage, and reliability."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.dashboard.curves import histogram, reliability, risk_coverage
from heedful.errors import UsageError

SURE_IS_RIGHT = [(at / 100, at >= 50) for at in range(100)]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_a_histogram_counts_every_value(values: list[float]) -> None:
    bars = histogram(values)
    assert bars.n == len(values)
    assert bars.low < bars.high


def test_an_outlier_does_not_flatten_the_histogram() -> None:
    bars = histogram([float(n) for n in range(200)] + [1e6])
    assert bars.high < 200
    assert max(bars.counts) < 12


def test_the_surest_answers_are_the_best_ones_and_all_of_them_come_last() -> None:
    points = risk_coverage(SURE_IS_RIGHT)
    assert [point.x for point in points] == [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    assert (points[0].right.value, points[0].right.n) == (1.0, 10)
    assert (points[-1].right.value, points[-1].right.n) == (0.5, 100)


def test_reliability_has_bins_of_equal_mass_with_intervals() -> None:
    points = reliability(SURE_IS_RIGHT)
    assert sum(point.right.n for point in points) == 100
    assert {point.right.n for point in points} <= {12, 13}
    assert (points[0].right.value, points[-1].right.value) == (0.0, 1.0)
    assert points[0].right.high > 0.1


def test_few_answers_make_no_curve_and_none_no_histogram() -> None:
    with pytest.raises(UsageError, match="at least 20 graded answers, not 19"):
        reliability(SURE_IS_RIGHT[:19])
    with pytest.raises(UsageError, match="not 0"):
        risk_coverage([])
    with pytest.raises(UsageError, match="at least one value"):
        histogram([])
