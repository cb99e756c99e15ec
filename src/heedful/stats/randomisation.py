"""A randomisation test of an interaction: is a paired effect concentrated on marked rows?"""

import numpy as np
from numpy.typing import ArrayLike

from heedful.errors import UsageError
from heedful.stats.arrays import numbers


def randomisation_p_value(
    differences: ArrayLike, marked: ArrayLike, rng: np.random.Generator, resamples: int = 10_000
) -> float:
    """One-sided p-value of H0: the two members of each pair have the same distribution.

    The signs of the differences are flipped at random. p is the share of flips, including the original
    signs, for which the mean of the marked rows minus the mean of the others is at least as large
    (Fisher 1935). It is never 0, and it is valid if marked rows are noisier than others.
    """
    values = numbers(differences, "differences")
    hit = np.asarray(marked, dtype=bool)
    if len(hit) != len(values):
        raise UsageError(f"{len(hit)} marks for {len(values)} differences")
    if hit.all() or not hit.any():
        raise UsageError("a contrast needs both marked and unmarked rows")
    weighted = np.where(hit, values / hit.sum(), -values / (~hit).sum())
    moving = weighted[weighted != 0]
    signs = rng.choice((-1.0, 1.0), size=(resamples, len(moving)))
    as_large = int((signs @ moving >= weighted.sum() - 1e-12).sum())
    return (1 + as_large) / (1 + resamples)
