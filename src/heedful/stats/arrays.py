"""Checked input arrays of the statistics: finite, of equal length, never empty."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heedful.errors import UsageError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Groups = Sequence[str] | Sequence[int] | None
"""The task of each row."""


def numbers(values: ArrayLike, what: str, dimensions: int = 1) -> Floats:
    """The values as an array of finite numbers; at least one."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != dimensions or array.size == 0:
        raise UsageError(f"{what}: cannot compute a statistic of an array of shape {array.shape}")
    if not np.isfinite(array).all():
        raise UsageError(f"{what}: {int((~np.isfinite(array)).sum())} of {array.size} values are not finite")
    return array


def flags(values: ArrayLike, what: str, length: int) -> Bools:
    """The values as booleans (0 and 1 are accepted), one per row."""
    array = np.asarray(values)
    if array.shape != (length,):
        raise UsageError(f"{what}: shape {array.shape}, but there are {length} rows")
    if not np.isin(array, (0, 1)).all():
        raise UsageError(f"{what}: expected true and false (or 1 and 0), not {array[:5].tolist()}")
    return array.astype(np.bool_)


def by_task(values: Floats, groups: Groups) -> tuple[Floats, Floats]:
    """The sum and the number of rows of each task; without groups, each row is a task."""
    if groups is None:
        return values, np.ones_like(values)
    if len(groups) != len(values):
        raise UsageError(f"{len(groups)} task ids for {len(values)} differences")
    _, task = np.unique(np.asarray(groups), return_inverse=True)
    sums = np.bincount(task, weights=values).astype(np.float64)
    return sums, np.bincount(task).astype(np.float64)
