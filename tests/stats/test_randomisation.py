from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from heedful import UsageError
from heedful.stats.randomisation import randomisation_p_value


def exact(values: NDArray[np.float64], hits: Sequence[bool]) -> float:
    """Every way of swapping the members of pairs."""
    hit = np.array(hits)
    seen = values[hit].mean() - values[~hit].mean()
    flipped = [np.array(signs) * values for signs in product((-1, 1), repeat=len(values))]
    return float(np.mean([one[hit].mean() - one[~hit].mean() >= seen - 1e-12 for one in flipped]))


def test_the_p_value_is_that_of_all_flips() -> None:
    values = np.array([1, 1, 0, 1, 0, 0, -1, 0, 0.5, 0], dtype=float)
    hits = [True] * 4 + [False] * 6
    p = randomisation_p_value(values, hits, np.random.default_rng(0), 20_000)
    assert p == pytest.approx(exact(values, hits), abs=0.01)


@pytest.mark.parametrize("others", [[-1, 0, 1], [0]], ids=["noise everywhere", "noise on the hits only"])
def test_under_no_effect_it_is_small_no_more_often_than_it_says(others: list[int]) -> None:
    rng = np.random.default_rng(4)
    hits = np.arange(60) < 20

    def drawn() -> float:
        values = np.where(hits, rng.choice([-1, 0, 1], 60, p=(0.1, 0.8, 0.1)), rng.choice(others, 60))
        return randomisation_p_value(values, hits, rng, 200)

    small = [drawn() <= 0.05 for _ in range(600)]
    assert np.mean(small) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 600)


def test_an_effect_on_the_hits_is_found_and_one_elsewhere_is_not() -> None:
    hits = np.arange(60) < 20
    rng = np.random.default_rng(1)
    assert randomisation_p_value(hits * (np.arange(60) % 2), hits, rng) < 0.01
    assert randomisation_p_value(~hits * (np.arange(60) % 2), hits, rng) > 0.5


@pytest.mark.parametrize("hits", [[True, True], [False, False], [True]])
def test_a_contrast_needs_both_kinds_of_rows(hits: list[bool]) -> None:
    with pytest.raises(UsageError):
        randomisation_p_value([1.0, 0.0], hits, np.random.default_rng(0))
