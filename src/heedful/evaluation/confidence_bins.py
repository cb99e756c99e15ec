"""Accuracy by confidence: where memory helps, and how accurate the model is on its surest rows."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from heedful.evaluation.components import SIGNAL
from heedful.evaluation.study_data import StudyData
from heedful.protocol.table import Bools, Floats, Ints
from heedful.stats.intervals import Interval, share_of
from heedful.stats.ranking import midranks

BINS = 10
SHARES = tuple(range(10, 101, 10))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceBin:
    """Rows with similar confidence of the memory-free pass."""

    low: float
    high: float
    right: Mapping[str, Interval]
    """Accuracy of the baseline and of every bank in every prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoveragePoint:
    """The baseline's accuracy on the surest share of rows."""

    share: int
    """In percent."""
    accuracy: Interval


def bin_rows(data: StudyData) -> tuple[ConfidenceBin, ...]:
    """Ten equal-mass bins; rows of equal confidence stay together."""
    confidence, rows = _known(data)
    if not len(rows):
        return ()
    right = {"baseline": data.test.base_right}
    right |= {f"always-{bank}": data.test.first(bank).right for bank in data.banks}
    place = ((2 * midranks(confidence) - 1) * BINS // (2 * len(rows))).astype(np.int64)
    return tuple(
        ConfidenceBin(
            low=float(confidence[place == at].min()),
            high=float(confidence[place == at].max()),
            right={name: _share(data, values, rows[place == at]) for name, values in right.items()},
        )
        for at in range(BINS)
        if (place == at).any()
    )


def _share(data: StudyData, right: Bools, rows: Ints) -> Interval:
    return share_of(right[rows], data.clusters_of(rows))


def keep_surest(data: StudyData) -> tuple[CoveragePoint, ...]:
    """Risk and coverage: how often the model is right on the rows it is surest of."""
    confidence, rows = _known(data)
    if not len(rows):
        return ()
    order = rows[np.argsort(-confidence, kind="stable")]
    counts = {share: max(1, round(len(order) * share / 100)) for share in SHARES}
    return tuple(
        CoveragePoint(share=share, accuracy=_share(data, data.test.base_right, order[:count]))
        for share, count in counts.items()
    )


def _known(data: StudyData) -> tuple[Floats, Ints]:
    """Confidence of the memory-free pass where it was measured, and the rows."""
    values = data.test.table.column("none").signals.get(SIGNAL)
    rows = np.flatnonzero([] if values is None else np.isfinite(values))
    return np.array([]) if values is None else values[rows], rows
