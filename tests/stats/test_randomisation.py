from itertools import combinations

import numpy as np
import pytest

from heedful import UsageError
from heedful.stats.randomisation import randomisation_p_value


def exact(values, hits):
    """Every way of marking as many rows."""
    n, k = len(values), sum(hits)
    seen = np.mean(values[np.array(hits)]) - np.mean(values[~np.array(hits)])
    found = []
    for chosen in combinations(range(n), k):
        inside = np.zeros(n, dtype=bool)
        inside[list(chosen)] = True
        found.append(values[inside].mean() - values[~inside].mean() >= seen - 1e-12)
    return np.mean(found)


def test_the_p_value_is_that_of_all_shuffles():
    values = np.array([1, 1, 0, 1, 0, 0, -1, 0, 0, 0], dtype=float)
    hits = [True] * 4 + [False] * 6
    p = randomisation_p_value(values, hits, np.random.default_rng(0), 20_000)
    assert p == pytest.approx(exact(values, hits), abs=0.01)


def test_under_no_effect_it_is_small_no_more_often_than_it_says():
    rng = np.random.default_rng(4)
    hits = np.arange(60) < 20
    small = [randomisation_p_value(rng.choice([-1, 0, 1], 60), hits, rng, 200) <= 0.05 for _ in range(600)]
    assert np.mean(small) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 600)


@pytest.mark.parametrize("hits", [[True, True], [False, False], [True]])
def test_a_contrast_needs_both_kinds_of_rows(hits):
    with pytest.raises(UsageError):
        randomisation_p_value([1.0, 0.0], hits, np.random.default_rng(0))
