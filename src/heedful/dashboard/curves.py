"""Does confidence tell right answers from wrong ones? Histogram, risk and coverage, reliability."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from heedful.dashboard.effects import share_interval
from heedful.errors import UsageError
from heedful.stats.intervals import Interval

BINS = 24
COVERAGE_STEPS = 10
RELIABILITY_BINS = 8
LEAST = 20
"""Fewer graded answers make no curve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Counts in bins of equal width; values outside the range are counted in the outermost bins."""

    low: float
    high: float
    counts: tuple[int, ...]

    @property
    def n(self) -> int:
        return sum(self.counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """A share of right answers at a place on the horizontal axis."""

    x: float
    right: Interval


def histogram(values: Sequence[float], bins: int = BINS) -> Histogram:
    """Bins from the 1st to the 99th percentile, so that one outlier does not flatten the rest."""
    if not values:
        raise UsageError("a histogram needs at least one value")
    ordered = sorted(values)
    low, high = ordered[len(ordered) // 100], ordered[-1 - len(ordered) // 100]
    if low == high:
        low, high = low - 0.5, high + 0.5
    counts = [0] * bins
    for value in ordered:
        place = int((value - low) / (high - low) * bins)
        counts[min(max(place, 0), bins - 1)] += 1
    return Histogram(low=low, high=high, counts=tuple(counts))


def risk_coverage(graded: Sequence[tuple[float, bool]]) -> tuple[CurvePoint, ...]:
    """Accuracy on the surest 10%, 20%, … of the answers; x is the share in percent."""
    ordered = _refuse_few(sorted(graded, key=lambda point: -point[0]))
    points = []
    for step in range(1, COVERAGE_STEPS + 1):
        n = max(1, round(len(ordered) * step / COVERAGE_STEPS))
        right = share_interval(sum(right for _, right in ordered[:n]), n)
        points.append(CurvePoint(x=100 * step / COVERAGE_STEPS, right=right))
    return tuple(points)


def reliability(graded: Sequence[tuple[float, bool]]) -> tuple[CurvePoint, ...]:
    """Accuracy in bins of equal mass; x is the mean confidence of a bin."""
    ordered = _refuse_few(sorted(graded))
    edges = [len(ordered) * at // RELIABILITY_BINS for at in range(RELIABILITY_BINS + 1)]
    parts = [ordered[low:high] for low, high in pairwise(edges) if low < high]
    return tuple(
        CurvePoint(
            x=fmean(confidence for confidence, _ in part),
            right=share_interval(sum(right for _, right in part), len(part)),
        )
        for part in parts
    )


def _refuse_few(graded: list[tuple[float, bool]]) -> list[tuple[float, bool]]:
    if len(graded) < LEAST:
        raise UsageError(f"a curve needs at least {LEAST} graded answers, not {len(graded)}")
    return graded
