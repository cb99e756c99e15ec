"""How often the 95% interval holds the truth.

The interval depends only on the numbers of helps and hurts, so coverage is a sum over those numbers
weighted by their multinomial probability: no studies need to be simulated.
"""

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multinomial

from heedful.stats.bootstrap import paired_interval

SCALES = np.linspace(0.9, 1.1, 21)
"""Truths around the stated one: coverage depends on where the truth lies between two steps of 1/n."""


def probabilities(
    n: int, helps: float, hurts: float
) -> tuple[NDArray[np.int64], dict[float, NDArray[np.float64]]]:
    top = [int(n * share + 4 * np.sqrt(n * share) + 4) for share in (1.2 * helps, 1.2 * hurts)]
    counts = np.stack(np.meshgrid(*(np.arange(t) for t in top), indexing="ij"), axis=-1).reshape(-1, 2)
    rows = np.column_stack((counts, n - counts.sum(axis=1)))
    return counts, {
        scale: multinomial.pmf(rows, n, [scale * helps, scale * hurts, 1 - scale * (helps + hurts)])
        for scale in SCALES
    }


def limits(n: int, counts: NDArray[np.int64], likely: NDArray[np.bool_]) -> NDArray[np.float64]:
    rng, ends = np.random.default_rng(11), np.full((len(counts), 2), np.nan)
    for place in np.flatnonzero(likely):
        helps, hurts = counts[place]
        differences = np.repeat([1, -1, 0], [helps, hurts, n - helps - hurts])
        interval = paired_interval(differences, None, rng, resamples=2000)
        ends[place] = interval.low, interval.high
    return ends


def coverage(n: int, helps: float, hurts: float) -> Iterator[float]:
    """Coverage at each truth; pairs of counts too rare to matter (2e-3 in all) count as misses."""
    counts, likely = probabilities(n, helps, hurts)
    ends = limits(n, counts, sum(likely.values(), np.zeros(len(counts))) / len(SCALES) > 2e-6)
    for scale, weight in likely.items():
        truth = scale * (helps - hurts)
        yield weight[(ends[:, 0] <= truth + 1e-9) & (truth <= ends[:, 1] + 1e-9)].sum()


@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 600])
@pytest.mark.parametrize(("helps", "hurts"), [(0.12, 0.04), (0.03, 0.01)])
def test_the_interval_covers_the_truth_as_often_as_it_says(n: int, helps: float, hurts: float) -> None:
    covered = list(coverage(n, helps, hurts))
    assert min(covered) > 0.935
    assert max(covered) < 0.965


@pytest.mark.slow
def test_the_interval_over_repeated_tasks_covers_while_one_over_rows_does_not() -> None:
    """200 tasks, 3 seeds each; two thirds of the tasks answer alike under every seed."""
    rng, tasks, studies = np.random.default_rng(5), 200, 1500
    chances, ids = [0.12, 0.04, 0.84], np.repeat(np.arange(tasks), 3)
    hits = np.zeros(2)
    for _ in range(studies):
        fixed = rng.choice([1, -1, 0], size=(tasks, 1), p=chances)
        fresh = rng.choice([1, -1, 0], size=(tasks, 3), p=chances)
        rows = np.where(rng.random((tasks, 1)) < 2 / 3, fixed, fresh).ravel()
        for place, groups in enumerate((ids.tolist(), None)):
            interval = paired_interval(rows, groups, rng, resamples=500)
            hits[place] += interval.low <= 0.08 <= interval.high
    by_task, by_row = hits / studies
    assert 0.935 < by_task < 0.965
    assert by_row < 0.90
