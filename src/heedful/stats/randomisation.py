"""A randomisation test: does an effect sit on marked rows more than chance would put there?"""

import numpy as np
from numpy.typing import ArrayLike

from heedful.errors import UsageError
from heedful.stats.arrays import numbers


def randomisation_p_value(
    differences: ArrayLike, marked: ArrayLike, rng: np.random.Generator, resamples: int = 10_000
) -> float:
    """One-sided p-value of H0: where the marks are has nothing to do with the differences.

    The marks are shuffled over the rows; p counts the shuffles, and the marks as they are, whose
    contrast of means is at least as large (Fisher 1935). Never 0. It tells whether an effect sits on
    the marked rows; whether there is one on them is another question (a sign or McNemar test there).
    """
    values = numbers(differences, "differences")
    hit = np.asarray(marked, dtype=bool)
    if len(hit) != len(values):
        raise UsageError(f"{len(hit)} marks for {len(values)} differences")
    if hit.all() or not hit.any():
        raise UsageError("a contrast needs marked rows and others")
    total, n, k = float(values.sum()), len(values), int(hit.sum())

    def contrast(inside: float) -> float:
        return inside / k - (total - inside) / (n - k)

    seen = contrast(float(values[hit].sum()))
    drawn = (float(rng.permutation(values)[:k].sum()) for _ in range(resamples))
    as_large = sum(contrast(inside) >= seen - 1e-12 for inside in drawn)
    return (1 + as_large) / (1 + resamples)
