import json
import warnings
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from heedful.errors import UsageError
from heedful.stats.logistic import Logistic, fit_logistic


def study(seed: int, n: int = 200, width: int = 3) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, width)) * rng.uniform(0.01, 100, width) + rng.normal(size=width) * 50
    standard = (features - features.mean(axis=0)) / features.std(axis=0)
    right = rng.random(n) < 1 / (1 + np.exp(-(standard @ rng.normal(size=width) + 0.5)))
    right[:2] = (True, False)
    return features, right


def oracle(features: NDArray[np.float64], right: NDArray[np.bool_], penalty: float) -> Any:
    model = LogisticRegression(C=1 / penalty, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(StandardScaler().fit_transform(features), right)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), width=st.integers(1, 6), penalty=st.sampled_from([0.01, 0.1, 1.0, 30.0]))
def test_the_fit_is_scikit_learns(seed: int, width: int, penalty: float) -> None:
    features, right = study(seed, width=width)
    fitted, expected = fit_logistic(features, right, penalty), oracle(features, right, penalty)
    assert fitted.weights == pytest.approx(tuple(expected.coef_[0]), abs=1e-6)
    assert fitted.bias == pytest.approx(float(expected.intercept_[0]), abs=1e-6)
    given_ = fitted.probability(features)
    standard = StandardScaler().fit_transform(features)
    assert given_ == pytest.approx(expected.predict_proba(standard)[:, 1], abs=1e-6)


@given(seed=st.integers(0, 10**6), scale=st.floats(1e-3, 1e3), shift=st.floats(-1e3, 1e3))
def test_units_of_a_feature_do_not_matter(seed: int, scale: float, shift: float) -> None:
    features, right = study(seed, n=60, width=2)
    before = fit_logistic(features, right, 1.0).probability(features)
    moved = features * [scale, 1] + [shift, 0]
    assert fit_logistic(moved, right, 1.0).probability(moved) == pytest.approx(before, abs=1e-6)


@given(seed=st.integers(0, 10**6))
def test_the_free_bias_makes_the_mean_probability_the_share_right(seed: int) -> None:
    features, right = study(seed, n=80)
    assert fit_logistic(features, right, 5.0).probability(features).mean() == pytest.approx(right.mean())


@pytest.mark.parametrize("seed", [12, 20, 27])
def test_thousands_of_rows_with_three_wrong_ones_converge(seed: int) -> None:
    rng = np.random.default_rng(seed)
    right = np.arange(4000) >= 3
    noise = rng.normal(size=4000), rng.normal(size=4000)
    features = np.column_stack([noise[0], right * 5.0 + noise[1] * 0.1, right * 3.0])
    fitted, expected = fit_logistic(features, right, 1.0), oracle(features, right, 1.0)
    assert fitted.weights == pytest.approx(tuple(expected.coef_[0]), abs=1e-5)


def test_a_constant_column_gets_no_weight_and_changes_nothing() -> None:
    features, right = study(1)
    padded = np.column_stack((features, np.full(len(features), 0.1)))
    fitted = fit_logistic(padded, right, 1.0)
    assert fitted.weights[-1] == 0
    assert fitted.weights[:-1] == pytest.approx(fit_logistic(features, right, 1.0).weights)
    assert (fitted.means[-1], fitted.scales[-1]) == (0.1, 1.0)


@pytest.mark.parametrize("penalty", [1e-6, 1e-3, 1.0])
def test_perfectly_separable_rows_get_finite_weights(penalty: float) -> None:
    features = np.linspace(-1, 1, 40)[:, None]
    right = features[:, 0] > 0
    fitted, expected = fit_logistic(features, right, penalty), oracle(features, right, penalty)
    assert fitted.weights == pytest.approx(tuple(expected.coef_[0]), rel=1e-4)
    assert ((fitted.probability(features) > 0.5) == right).all()


def test_twin_columns_share_the_weight() -> None:
    features, right = study(3, width=1)
    first, second = fit_logistic(np.hstack((features, features)), right, 1.0).weights
    assert first == pytest.approx(second)


def test_a_fit_survives_json() -> None:
    features, right = study(4)
    fitted = fit_logistic(features, right, 1.0)
    read: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in json.loads(json.dumps(asdict(fitted))).items()
    }
    assert Logistic(**read) == fitted


def test_what_has_no_fit_is_refused() -> None:
    features, right = study(5, n=10)
    with pytest.raises(UsageError, match="cannot compute a statistic"):
        fit_logistic(np.empty((0, 2)), [], 1.0)
    with pytest.raises(UsageError, match="the same outcome"):
        fit_logistic(features, np.ones(10), 1.0)
    with pytest.raises(UsageError, match="penalty"):
        fit_logistic(features, right, 0.0)
    with pytest.raises(UsageError, match="3 features, not 2"):
        fit_logistic(features, right, 1.0).probability(features[:, :2])
    with pytest.raises(UsageError, match="not finite"):
        fit_logistic(features * np.inf, right, 1.0)
