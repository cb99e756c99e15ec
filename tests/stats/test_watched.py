import numpy as np
import pytest

from heedful import UsageError
from heedful.stats.risk import clopper_pearson
from heedful.stats.watched import watched_share


def test_the_interval_covers_the_truth_at_every_look() -> None:
    rng, runs, truth = np.random.default_rng(3), 400, 0.1
    looks = (1, 2, 5, 10, 20, 50, 100, 200, 400, 800)
    missed = 0
    for _ in range(runs):
        hits = np.cumsum(rng.random(max(looks)) < truth)
        intervals = [watched_share(int(hits[n - 1]), n) for n in looks]
        missed += any(not one.low <= truth <= one.high for one in intervals)
    assert missed / runs <= 0.05


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (0, 50), (3, 50), (50, 50), (20, 400)])
def test_the_price_of_looking_often_is_a_wider_interval(hits: int, n: int) -> None:
    watched, (low, high) = watched_share(hits, n), clopper_pearson(hits, n)
    assert watched.low <= low <= hits / n <= high <= watched.high
    assert (watched.value, watched.n) == (hits / n, n)


def test_more_answers_and_less_confidence_narrow_it() -> None:
    assert watched_share(10, 100).high < watched_share(1, 10).high
    assert watched_share(1, 10, level=0.5).high < watched_share(1, 10).high
    assert (watched_share(0, 9).low, watched_share(9, 9).high) == (0.0, 1.0)


@pytest.mark.parametrize(("hits", "n"), [(0, 0), (3, 2), (-1, 5)])
def test_an_impossible_count_is_refused(hits: int, n: int) -> None:
    with pytest.raises(UsageError, match=f"{hits} of {n}"):
        watched_share(hits, n)
