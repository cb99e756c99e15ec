"""Does a score rank the positives above the negatives?"""

from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from heedful.errors import UsageError
from heedful.extras import importing
from heedful.stats.arrays import Bools, Floats, flags, numbers
from heedful.stats.intervals import Interval, check_level

with importing("study"):
    from scipy.special import expit, logit, ndtri, stdtrit


def auc(scores: ArrayLike, positive: ArrayLike, level: float = 0.95) -> Interval:
    """The probability that a positive scores above a negative; a tie counts half (Mann–Whitney).

    The interval is DeLong's (1988) on the logit scale, which Perme and Manevski (2019) found the
    most reliable, with the degrees of freedom of Brunner and Munzel (2000) for small classes; see
    `_score_limits` for cases in which that variance does not exist. Simulated on normal scores, the 95%
    interval covers 94% to 97% from 8 against 60 rows on and 99% for 6 against 10. Coverage is too low
    if the smaller class also has the larger spread, at an AUC of 0.9 and spreads 2 to 1: 94% for 30
    against 120 rows, 92% for 15 against 40, 88% for 8 against 60.
    """
    check_level(level)
    values = numbers(scores, "scores")
    is_positive = flags(positive, "positive", len(values))
    positives, negatives = int(is_positive.sum()), int((~is_positive).sum())
    if not positives or not negatives:
        raise UsageError(f"an AUC needs both classes, not {positives} positives and {negatives} negatives")
    above, below = _placements(values, is_positive)
    value, tail = float(above.mean()), (1 + level) / 2
    variance, freedom = _delong(above, below)
    if variance > 1e-12 and 0 < value < 1:
        half = float(stdtrit(freedom, tail)) * sqrt(variance) / (value * (1 - value))
        low, high = float(expit(logit(value) - half)), float(expit(logit(value) + half))
    else:
        low, high = _score_limits(value, positives, negatives, float(ndtri(tail)))
    return Interval(low=low, high=high, value=value, n=len(values))


def auc_or_none(scores: ArrayLike, positive: ArrayLike, level: float = 0.95) -> Interval | None:
    """The AUC, or None if there are no rows or only one class."""
    present = np.unique(np.asarray(positive))
    return auc(scores, positive, level) if len(present) > 1 else None


def midranks(values: Floats) -> Floats:
    """Ranks from 1; tied values share their mean rank."""
    _, place, repeats = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(repeats)
    return np.asarray((last - (repeats - 1) / 2)[place], dtype=np.float64)


def _placements(values: Floats, positive: Bools) -> tuple[Floats, Floats]:
    """For each positive the share of negatives below it, for each negative the share of positives above.

    Computed from the ranks among all rows and within each class (Sun and Xu 2014).
    """
    ranks, above, below = midranks(values), values[positive], values[~positive]
    return (
        (ranks[positive] - midranks(above)) / len(below),
        1 - (ranks[~positive] - midranks(below)) / len(above),
    )


def _delong(above: Floats, below: Floats) -> tuple[float, float]:
    """The variance of the AUC (DeLong et al. 1988) and its degrees of freedom (Brunner and Munzel 2000).

    The variance is set to 0 if a class has one row.
    """
    if min(len(above), len(below)) < 2:
        return 0.0, 0.0
    parts = [float(one.var(ddof=1)) / len(one) for one in (above, below)]
    variance = sum(parts)
    if not variance:
        return 0.0, 0.0
    return variance, variance**2 / (parts[0] ** 2 / (len(above) - 1) + parts[1] ** 2 / (len(below) - 1))


def _score_limits(value: float, positives: int, negatives: int, z: float) -> tuple[float, float]:
    """Where |value − θ| = z·sd(θ), by Newcombe's (2006) fifth method.

    DeLong's variance is 0 for perfect or constant scores and unknown for a class of one row; this
    one depends on θ and the class sizes alone.
    """

    def inside(theta: float) -> bool:
        mean_size = (positives + negatives) / 2
        overlap = (1 - theta) / (2 - theta) + theta / (1 + theta)
        variance = theta * (1 - theta) * (1 + (mean_size - 1) * overlap) / (positives * negatives)
        return (theta - value) ** 2 <= z * z * variance

    limits = []
    for end in (0.0, 1.0):
        near, far = value, end
        for _ in range(60):
            middle = (near + far) / 2
            near, far = (middle, far) if inside(middle) else (near, middle)
        limits.append(near)
    return limits[0], limits[1]
