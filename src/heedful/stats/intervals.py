"""The type of an interval, and intervals of shares."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from heedful.errors import UsageError
from heedful.stats.arrays import Bools

Z95 = 1.959963984540054
"""The 97.5% quantile of the normal distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate with its confidence limits and the number of independent units behind it."""

    low: float
    high: float
    value: float
    n: int


def wilson(hits: float, n: int) -> tuple[float, float]:
    """The 95% score interval of a share (Wilson 1927); hits may be a mean over repetitions."""
    if n <= 0 or not 0 <= hits <= n:
        raise UsageError(f"cannot compute an interval for {hits} of {n}")
    share, z2 = hits / n, Z95 * Z95
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 / (1 + z2 / n) * sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def difference_of_shares(hits: int, n: int, other_hits: int, other_n: int) -> Interval:
    """The first share minus the second, of separate tasks, with its 95% score interval (Newcombe 1998)."""
    (low, high), (other_low, other_high) = wilson(hits, n), wilson(other_hits, other_n)
    share, other = hits / n, other_hits / other_n
    return Interval(
        low=share - other - sqrt((share - low) ** 2 + (other_high - other) ** 2),
        high=share - other + sqrt((high - share) ** 2 + (other - other_low) ** 2),
        value=share - other,
        n=n + other_n,
    )


def share_of(hits: Bools, tasks: Sequence[str]) -> Interval:
    """The share of hits with its Wilson interval, in which the rows of a task count as one."""
    count, rows, n = int(hits.sum()), len(hits), len(set(tasks))
    low, high = wilson(count * n / rows, n)
    return Interval(low=low, high=high, value=count / rows, n=n)


def check_level(level: float) -> None:
    """Refuse a confidence level that is not strictly between 0 and 1."""
    if not 0 < level < 1:
        raise UsageError(f"a confidence level must be between 0 and 1, not {level}: 0.95 is usual")
