import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss

from heedful.errors import UsageError
from heedful.stats.calibration import brier, ece, fit_platt, measure_calibration, nll

rated = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=80)


def split(rows: Sequence[tuple[float, bool]]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    return np.array([p for p, _ in rows]), np.array([right for _, right in rows])


def study(seed: int, n: int = 300) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    rng = np.random.default_rng(seed)
    scores = -rng.gamma(2, 10 ** rng.uniform(-2, 2), n)
    standard = (scores - scores.mean()) / scores.std()
    return scores, rng.random(n) < 1 / (1 + np.exp(-rng.normal() * standard - rng.normal()))


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6))
def test_platt_without_smoothing_is_scikit_learns_unpenalised_regression(seed: int) -> None:
    scores, right = study(seed)
    scale = np.abs(scores).max()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12, max_iter=1000)
        model.fit(scores[:, None] / scale, right)
    fitted = fit_platt(scores, right, smooth=False)
    expected = model.predict_proba(scores[:, None] / scale)[:, 1]
    assert fitted.slope * scale == pytest.approx(model.coef_[0, 0], rel=1e-6, abs=1e-6)
    assert fitted.intercept == pytest.approx(model.intercept_[0], rel=1e-6, abs=1e-6)
    assert fitted.probability(scores) == pytest.approx(expected, abs=1e-6)


@given(seed=st.integers(0, 10**6))
def test_smoothed_platt_gives_the_mean_of_its_smoothed_targets(seed: int) -> None:
    scores, right = study(seed, n=40)
    r, w = right.sum(), (~right).sum()
    targets = np.where(right, (r + 1) / (r + 2), 1 / (w + 2))
    given_ = fit_platt(scores, right).probability(scores)
    assert given_.mean() == pytest.approx(targets.mean(), abs=1e-9)
    assert (given_ * scores).mean() == pytest.approx((targets * scores).mean(), rel=1e-7)


@given(seed=st.integers(0, 10**6))
def test_platt_keeps_the_order_of_scores_or_turns_it(seed: int) -> None:
    scores, right = study(seed, n=40)
    fitted = fit_platt(scores, right)
    steps = np.diff(fitted.probability(np.sort(scores))) * np.sign(fitted.slope)
    assert (steps >= 0).all()


def test_smoothing_fits_what_has_no_maximum_and_the_plain_fit_refuses_it() -> None:
    scores, parted = np.arange(10.0), np.arange(10) >= 5
    assert 0 < fit_platt(scores, parted).slope < 10
    assert fit_platt(scores, np.ones(10)).probability([3.0]) == pytest.approx(11 / 12)
    assert fit_platt([2.0] * 4, [1, 1, 1, 0], smooth=False).probability([2.0]) == pytest.approx(0.75)
    for right in (parted, ~parted, np.ones(10), np.zeros(10)):
        with pytest.raises(UsageError, match="smooth=True"):
            fit_platt(scores, right, smooth=False)


@given(rated)
def test_brier_and_nll_are_scikit_learns(rows: list[tuple[float, bool]]) -> None:
    given_, right = split(rows)
    assert brier(given_, right) == pytest.approx(brier_score_loss(right, given_, pos_label=1), abs=1e-9)
    clipped = np.clip(given_, 1e-12, 1 - 1e-12)
    assert nll(given_, right) == pytest.approx(log_loss(right, clipped, labels=[0, 1]), abs=1e-9)


@given(rated)
def test_ece_is_a_share_bounded_by_the_brier_root_and_blind_to_the_order_of_rows(
    rows: list[tuple[float, bool]],
) -> None:
    given_, right = split(rows)
    value = ece(given_, right)
    assert 0 <= value <= np.sqrt(brier(given_, right)) + 1e-9
    assert ece(given_[::-1], right[::-1]) == pytest.approx(value, abs=1e-12)


@given(st.integers(1, 12), st.integers(0, 10**6))
def test_ece_without_ties_is_that_of_sorted_rows_cut_in_ten(tens: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    given_, right = rng.random(10 * tens), rng.random(10 * tens) < 0.6
    order = np.argsort(given_)
    bins = zip(given_[order].reshape(10, tens), right[order].reshape(10, tens), strict=True)
    assert ece(given_, right) == pytest.approx(np.mean([abs(r.mean() - p.mean()) for p, r in bins]))


def test_one_probability_for_all_rows_is_one_bin() -> None:
    assert ece([0.75] * 4, [1, 1, 1, 0]) == 0
    assert ece([0.5] * 4, [1, 1, 1, 0]) == 0.25


def test_certainty_that_was_wrong_costs_the_clipped_nll() -> None:
    assert nll([1.0], [False]) == pytest.approx(-np.log(1e-12), rel=1e-4)
    assert nll([1.0], [True]) == pytest.approx(0, abs=1e-11)


def test_platt_fitted_on_one_half_improves_the_calibration_of_the_other() -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(size=4000)
    right = rng.random(4000) < 1 / (1 + np.exp(-(0.4 * scores + 1)))
    raw = measure_calibration(1 / (1 + np.exp(-3 * scores[2000:])), right[2000:])
    scaled = measure_calibration(
        fit_platt(scores[:2000], right[:2000]).probability(scores[2000:]), right[2000:]
    )
    assert scaled.n == 2000
    assert scaled.ece < 0.04 < 0.2 < raw.ece
    assert scaled.brier < raw.brier
    assert scaled.nll < raw.nll


@pytest.mark.parametrize("measure", [ece, brier, nll, measure_calibration, fit_platt])
def test_empty_and_unmatched_rows_are_refused(measure: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match="cannot compute a statistic"):
        measure([], [])
    with pytest.raises(UsageError, match="2 rows"):
        measure([0.1, 0.2], [True])


def test_what_is_not_a_probability_and_no_bins_are_refused() -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        brier([1.5], [True])
    with pytest.raises(UsageError, match="bins"):
        ece([0.5], [True], bins=0)
