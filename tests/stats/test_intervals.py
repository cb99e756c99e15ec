import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from statsmodels.stats.proportion import proportion_confint

from heedful.errors import UsageError
from heedful.stats.intervals import share_of, wilson


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_limits_are_statsmodels_wilson_ones(counts: tuple[int, int]) -> None:
    hits, n = counts
    expected = np.clip(proportion_confint(hits, n, alpha=0.05, method="wilson"), 0, 1)
    assert wilson(hits, n) == pytest.approx(tuple(expected), abs=1e-9)


@pytest.mark.parametrize("n", [180, 300, 600])
def test_the_interval_of_an_accuracy_covers_the_truth_as_often_as_it_says(n: int) -> None:
    counts = np.arange(n + 1)
    low, high = np.array([wilson(int(hits), n) for hits in counts]).T
    for truth in np.linspace(0.3, 0.95, 131):
        covered = binom.pmf(counts, n, truth)[(low <= truth) & (truth <= high)].sum()
        assert 0.935 < covered < 0.965


def test_seeds_of_a_task_add_no_certainty() -> None:
    right = np.arange(40) % 4 > 0
    once = share_of(right, [f"t{n}" for n in range(40)])
    thrice = share_of(np.tile(right, 3), [f"t{n}" for n in range(40)] * 3)
    assert (once.value, once.n) == (0.75, 40)
    assert thrice == once


@pytest.mark.parametrize(("hits", "n"), [(0, 0), (-1, 5), (6, 5)])
def test_a_share_that_cannot_be_is_refused(hits: int, n: int) -> None:
    with pytest.raises(UsageError, match="no interval"):
        wilson(hits, n)
