"""Bootstrap interval of a mean over tasks."""

import numpy as np
from numpy.typing import ArrayLike

from heedful.errors import UsageError
from heedful.stats.arrays import Floats, Groups, by_task, numbers
from heedful.stats.intervals import Interval, check_level

FEWEST = 100
"""The least number of resamples for a meaningful tail quantile."""

CELLS = 1_000_000
"""Weights held in memory at once."""


def paired_interval(
    differences: ArrayLike,
    groups: Groups,
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = 10_000,
) -> Interval:
    """The mean paired difference with its percentile bootstrap interval (Efron 1979) over tasks.

    `groups` names the task of each row: tasks are drawn, so rows of one task (several seeds) stay
    together, and the interval's n counts tasks. Works for any mean of per-row values.

    A mean of n values in {−1, 0, 1} moves in steps of 1/n, and the plain percentile interval ends on
    such steps: with helps 3% and hurts 1% of 300 it covers between 93.2% and 95.5%, depending on where
    the truth lies between two steps (BCa: 92.2% to 94.7%). Each end is therefore moved out by half a step
    (a continuity correction), which covers 94.8% to 96.1% there, 95.2% to 95.8% for 600, and 95.3% to
    95.7% with helps 12% and hurts 4%. Values that are not on a lattice have steps near 0 and hardly change.

    A bootstrap cannot see what was never drawn: equal differences give an interval of zero width, and
    with only two or three changed tasks expected (2% and 0.5% of 100) it covers 86%.
    """
    check_level(level)
    if resamples < FEWEST:
        raise UsageError(f"{resamples} resamples are too few for an interval: use {FEWEST} or more")
    values = numbers(differences, "differences")
    sums, counts = by_task(values, groups)
    means = _resampled_means(sums, counts, rng, resamples)
    tail = (1 - level) / 2
    low, high = np.quantile(means, (tail, 1 - tail), method="inverted_cdf")
    half = _step(sums) / (2 * len(values))
    low, high = float(low) - half, float(high) + half
    if np.abs(values).max() <= 1:  # differences of right and wrong: half a step must not leave their range
        low, high = max(low, -1.0), min(high, 1.0)
    return Interval(low=low, high=high, value=float(values.mean()), n=len(sums))


def _resampled_means(sums: Floats, counts: Floats, rng: np.random.Generator, resamples: int) -> Floats:
    """Means over tasks drawn with replacement.

    The number of draws of each distinct (sum, count) pair is multinomial, so the cost per resample
    depends on the number of distinct values, not on the number of tasks.
    """
    pairs, repeats = np.unique(np.stack((sums, counts), axis=1), axis=0, return_counts=True)
    shares = repeats / len(sums)
    block = max(1, CELLS // len(pairs))
    sizes = [min(block, resamples - start) for start in range(0, resamples, block)]
    totals = np.concatenate([rng.multinomial(len(sums), shares, size=size) @ pairs for size in sizes])
    return np.asarray(totals[:, 0] / totals[:, 1])


def _step(sums: Floats) -> float:
    """The smallest distance between two distinct values, 0 if there is only one."""
    distinct = np.unique(sums.round(12))
    return float(np.diff(distinct).min()) if len(distinct) > 1 else 0.0
