from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import brunnermunzel, rankdata
from scipy.stats import t as student
from sklearn.metrics import roc_auc_score

from heedful.errors import UsageError
from heedful.stats.ranking import auc, auc_or_none, midranks

scored = st.lists(
    st.tuples(st.integers(-5, 5) | st.floats(-1e6, 1e6), st.booleans()), min_size=2, max_size=60
).filter(lambda rows: len({positive for _, positive in rows}) == 2)


def split(rows: Sequence[tuple[float, bool]]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    return np.array([score for score, _ in rows], dtype=float), np.array([kind for _, kind in rows])


@given(scored)
def test_the_auc_is_scikit_learns_and_lies_in_its_interval(rows: list[tuple[float, bool]]) -> None:
    scores, positive = split(rows)
    interval = auc(scores, positive)
    assert interval.value == pytest.approx(roc_auc_score(positive, scores), abs=1e-9)
    assert 0 <= interval.low <= interval.value <= interval.high <= 1
    assert interval.n == len(rows)


@given(scored)
def test_only_the_order_of_scores_matters_and_turning_it_turns_the_auc(
    rows: list[tuple[float, bool]],
) -> None:
    scores, positive = split(rows)
    interval, turned = auc(scores, positive), auc(-scores, positive)
    assert auc(midranks(scores), positive) == interval
    assert (1 - turned.high, 1 - turned.low) == pytest.approx((interval.low, interval.high), abs=1e-9)
    assert 1 - turned.value == pytest.approx(interval.value)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=50))
def test_midranks_are_scipys(values: list[int]) -> None:
    assert midranks(np.array(values, dtype=float)) == pytest.approx(rankdata(values), abs=1e-9)


def test_the_limits_are_delongs_on_the_logit_scale_with_the_freedom_of_brunner_and_munzel() -> None:
    rng = np.random.default_rng(2)
    above, below = rng.normal(1, 1, 9).round(1), rng.normal(0, 2, 25).round(1)
    kernel = (above[:, None] > below) + 0.5 * (above[:, None] == below)
    value = kernel.mean()
    parts = np.array([kernel.mean(axis=1).var(ddof=1) / 9, kernel.mean(axis=0).var(ddof=1) / 25])
    freedom = parts.sum() ** 2 / (parts**2 / [8, 24]).sum()
    error = np.sqrt(parts.sum())
    against_half = 2 * student.sf(abs(value - 0.5) / error, freedom)
    assert against_half == pytest.approx(brunnermunzel(above, below).pvalue, abs=1e-9)
    half = student.ppf(0.975, freedom) * error / (value * (1 - value))
    ends = 1 / (1 + np.exp(-(np.log(value / (1 - value)) + half * np.array([-1, 1]))))
    interval = auc(np.concatenate((above, below)), np.arange(34) < 9)
    assert (interval.low, interval.high) == pytest.approx(tuple(ends), abs=1e-9)


@pytest.mark.parametrize(
    ("scores", "positive", "value"),
    [([3, 4, 1, 2], [1, 1, 0, 0], 1.0), ([5, 5, 5, 5], [1, 1, 0, 0], 0.5), ([2, 1, 3], [1, 0, 0], 0.5)],
)
def test_perfect_constant_and_single_scores_still_have_a_wide_interval(
    scores: list[int], positive: list[int], value: float
) -> None:
    interval = auc(scores, positive)
    assert interval.value == value
    assert interval.high - interval.low > 0.3


def test_the_limit_of_a_perfect_score_solves_newcombes_equation() -> None:
    low = auc(range(16), np.arange(16) >= 10).low
    spread = low * (1 - low) * (1 + 7 * ((1 - low) / (2 - low) + low / (1 + low))) / 60
    assert 1 - low == pytest.approx(1.959963984540054 * np.sqrt(spread), abs=1e-9)


def test_one_class_and_empty_input_are_refused_or_none() -> None:
    with pytest.raises(UsageError, match="2 positives and 0 negatives"):
        auc([1, 2], [True, True])
    with pytest.raises(UsageError, match="cannot compute a statistic"):
        auc([], [])
    with pytest.raises(UsageError, match="expected true and false"):
        auc([1, 2], [1, 2])
    assert auc_or_none([1, 2], [True, True]) is None
    assert auc_or_none([], []) is None
    assert auc_or_none([1, 2], [False, True]) == auc([1, 2], [False, True])


def coverage(positives: int, negatives: int, truth: float, studies: int) -> float:
    """How often the interval holds the truth on normal scores."""
    rng, hits = np.random.default_rng(9), 0
    positive = np.arange(positives + negatives) < positives
    for _ in range(studies):
        scores = rng.normal(np.where(positive, ndtri(truth) * np.sqrt(2), 0), 1)
        interval = auc(scores, positive)
        hits += interval.low <= truth <= interval.high
    return hits / studies


@pytest.mark.slow
@pytest.mark.parametrize(("positives", "negatives"), [(48, 43), (60, 60)])
@pytest.mark.parametrize("truth", [0.5, 0.77, 0.9])
def test_the_interval_covers_the_truth_as_often_as_it_says(
    positives: int, negatives: int, truth: float
) -> None:
    assert 0.935 < coverage(positives, negatives, truth, 3000) < 0.965


@pytest.mark.parametrize(("positives", "negatives"), [(8, 60), (10, 10), (20, 20), (40, 15)])
@pytest.mark.parametrize("truth", [0.5, 0.77, 0.9])
def test_the_interval_of_small_classes_is_rather_too_wide_than_too_narrow(
    positives: int, negatives: int, truth: float
) -> None:
    assert 0.925 < coverage(positives, negatives, truth, 800) < 0.99
