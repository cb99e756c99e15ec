"""Is confidence calibrated, and does it separate helps from hurts?"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from heedful.evaluation.components import PERCENTILE, SIGNAL
from heedful.evaluation.study_data import StudyData
from heedful.protocol.fit import threshold_at
from heedful.protocol.replay import Replayer
from heedful.protocol.table import Bools, Floats
from heedful.stats.bootstrap import paired_interval
from heedful.stats.calibration import CLIP, Calibration, fit_platt, measure_calibration
from heedful.stats.intervals import Interval
from heedful.stats.ranking import auc_or_none
from heedful.types import Policy

RESAMPLES = 1000
"""Fewer for means of distinct values, where the cost of a resample grows with the number of rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationScore:
    """How far confidences are from the outcomes, with intervals for the two measures that are means."""

    measured: Calibration
    brier: Interval
    nll: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCalibration:
    """exp(mean log-prob) of a source's passes read as a probability: raw, and by Platt scaling."""

    source: str
    fit_rows: int
    raw: CalibrationScore
    platt: CalibrationScore


@dataclass(frozen=True, slots=True, kw_only=True)
class Separability:
    """Whether a bank's confidence ranks its helps above its hurts."""

    bank: str
    signal: str
    scope: str
    helps: int
    hurts: int
    second: Interval | None
    """AUC of the second pass's confidence; None if there are no helps or no hurts."""
    gain: Interval | None
    """AUC of how much surer the second pass is than the first."""


def calibrate(data: StudyData) -> tuple[SourceCalibration, ...]:
    """Platt scaling fitted on the fit side and evaluated on the test side, for each pass with log-probs."""
    return tuple(found for source in ("none", *data.tuned_banks) if (found := _calibration(data, source)))


def _calibration(data: StudyData, source: str) -> SourceCalibration | None:
    given, outcome, _ = _raw(data.fit, source)
    tested, right, rows = _raw(data.test, source)
    if not len(given) or not len(tested):
        return None
    platt = fit_platt(given, outcome)
    clusters = data.clusters_of(np.flatnonzero(rows))

    def interval(values: Floats) -> Interval:
        return paired_interval(values, clusters, data.rng(), resamples=RESAMPLES)

    def scaled(probabilities: Floats) -> CalibrationScore:
        clipped = np.clip(probabilities, CLIP, 1 - CLIP)
        losses = -np.where(right, np.log(clipped), np.log1p(-clipped))
        return CalibrationScore(
            measured=measure_calibration(probabilities, right),
            brier=interval((probabilities - right) ** 2),
            nll=interval(losses),
        )

    return SourceCalibration(
        source=source,
        fit_rows=len(given),
        raw=scaled(tested),
        platt=scaled(platt.probability(tested)),
    )


def _raw(replayer: Replayer, source: str) -> tuple[Floats, Bools, Bools]:
    """exp(mean log-prob) where it was measured, whether the answer was right, and the mask of those rows."""
    column = replayer.table.column(source)
    mean = column.signals.get(SIGNAL, np.full(len(column.right), np.nan))
    rows = column.decoded & np.isfinite(mean)
    return np.exp(np.minimum(mean[rows], 0.0)), column.right[rows], rows


def separate(data: StudyData) -> tuple[Separability, ...]:
    """Per bank, by the signal `mean` and by that of the locked policy, on all rows and on routed ones.

    Only rows of the first seed count: the other seeds are not independent.
    """
    own = data.lock.policy.signal
    measured = data.test.table.column("none").signals
    signals = [name for name in dict.fromkeys((SIGNAL, own)) if name in measured]
    return tuple(
        found
        for bank in data.banks
        for signal in signals
        for scope, rows in _scopes(data, signal)
        if (found := _separability(data, bank, signal, scope, rows))
    )


def _scopes(data: StudyData, signal: str) -> Iterator[tuple[str, Bools]]:
    yield "all rows", data.once
    threshold = threshold_at(data.fit, signal, PERCENTILE)
    if threshold is not None:
        with np.errstate(invalid="ignore"):
            routed = data.test.table.column("none").signals[signal] < threshold
        yield f"routed at p{PERCENTILE}", np.asarray(data.once & routed)


def _separability(data: StudyData, bank: str, signal: str, scope: str, rows: Bools) -> Separability | None:
    column, base = data.test.table.column(bank), data.test.base_right
    second = column.signals.get(signal)
    if second is None:
        return None
    first = data.test.first_confidence(Policy(signal=signal))
    changed = rows & column.decoded & (column.right != base) & np.isfinite(second) & np.isfinite(first)
    helps = column.right[changed]
    return Separability(
        bank=bank,
        signal=signal,
        scope=scope,
        helps=int(helps.sum()),
        hurts=int((~helps).sum()),
        second=auc_or_none(second[changed], helps),
        gain=auc_or_none(second[changed] - first[changed], helps),
    )
