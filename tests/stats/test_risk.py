from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest
from statsmodels.stats.proportion import proportion_confint

from heedful.errors import UsageError
from heedful.stats.risk import binomial_p_value, certify_in_order, clopper_pearson, no_loss_p_value

counts = st.integers(1, 800).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
limits = st.floats(0.001, 0.5)
levels = st.sampled_from([0.8, 0.9, 0.95, 0.99])


@given(counts, limits)
def test_the_p_value_is_scipys_lower_binomial_tail(count: tuple[int, int], limit: float) -> None:
    hurts, n = count
    assert binomial_p_value(hurts, n, limit) == pytest.approx(binom.cdf(hurts, n, limit), rel=1e-9, abs=1e-12)


@given(counts, levels)
def test_two_sided_limits_are_statsmodels_beta_ones(count: tuple[int, int], level: float) -> None:
    hits, n = count
    expected = proportion_confint(hits, n, alpha=1 - level, method="beta")
    assert clopper_pearson(hits, n, level) == pytest.approx(tuple(map(float, expected)), abs=1e-9)


SIDES: list[tuple[Literal["lower", "upper"], Literal["less", "greater"]]] = [
    ("upper", "less"),
    ("lower", "greater"),
]


@given(st.integers(0, 40), levels)
def test_one_sided_limits_are_scipys(hits: int, level: float) -> None:
    for side, alternative in SIDES:
        expected = binomtest(hits, 40, alternative=alternative).proportion_ci(level, method="exact")
        assert clopper_pearson(hits, 40, level, side) == pytest.approx(
            (expected.low, expected.high), abs=1e-9
        )


@given(counts, st.floats(0.01, 0.5), levels)
def test_a_policy_is_certified_exactly_when_its_upper_bound_is_at_most_the_limit(
    count: tuple[int, int], limit: float, level: float
) -> None:
    hurts, n = count
    _, bound = clopper_pearson(hurts, n, level, "upper")
    if abs(bound - limit) > 1e-9:
        assert certify_in_order([binomial_p_value(hurts, n, limit)], 1 - level) == int(bound <= limit)


@given(st.lists(st.integers(0, 100), min_size=1, max_size=20), levels)
def test_certified_policies_all_pass_and_the_next_one_fails(hurts: list[int], level: float) -> None:
    p_values = [binomial_p_value(count, 100, 0.2) for count in hurts]
    certified = certify_in_order(p_values, 1 - level)
    passes = [p <= 1 - level for p in p_values]
    assert all(passes[:certified])
    assert certified == len(hurts) or not passes[certified]


@pytest.mark.parametrize("share", [0.005, 0.02, 0.1, 0.5])
def test_the_exact_limits_hold_the_truth_at_least_as_often_as_they_say(share: float) -> None:
    n = 200
    ends = np.array([clopper_pearson(hits, n) for hits in range(n + 1)])
    held = (ends[:, 0] <= share) & (share <= ends[:, 1])
    assert binom.pmf(np.arange(n + 1)[held], n, share).sum() >= 0.95


def test_the_first_failure_ends_the_sequence() -> None:
    assert certify_in_order([0.01, 0.05, 0.06, 0.01], 0.05) == 2
    assert certify_in_order(np.array([0.01, 0.02]), 0.05) == 2  # type: ignore[arg-type]
    assert certify_in_order([0.5], 0.05) == 0


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_p_value_of_no_loss_is_scipys_one_sided_sign_test(helps: int, hurts: int) -> None:
    if helps + hurts:
        expected = binomtest(hurts, helps + hurts, alternative="less").pvalue
        assert no_loss_p_value(helps, hurts) == pytest.approx(expected, rel=1e-9)
    else:
        assert no_loss_p_value(0, 0) == 1.0, "a policy that changes nothing proves nothing"


def test_what_is_no_count_limit_or_level_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one"):
        certify_in_order([], 0.05)
    with pytest.raises(UsageError, match="not a count"):
        binomial_p_value(0, 0, 0.1)
    with pytest.raises(UsageError, match="not a count"):
        clopper_pearson(11, 10)
    with pytest.raises(UsageError, match="harm limit"):
        binomial_p_value(1, 10, 1.0)
    with pytest.raises(UsageError, match="confidence level"):
        certify_in_order([0.1], 0.0)
    with pytest.raises(UsageError, match="counts"):
        no_loss_p_value(-1, 2)
