"""Sweeps: how well each signal does, and how much the result depends on the threshold."""

from dataclasses import dataclass, replace

import numpy as np

from heedful.evaluation.arm_results import Arm, measure
from heedful.evaluation.study_data import StudyData
from heedful.protocol.fit import tune_gate
from heedful.protocol.policy_grid import thresholds_of
from heedful.stats.intervals import Interval, share_of
from heedful.types import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalPoint:
    """A signal with the bank and percentile that were best on the fit side, evaluated on the test side."""

    signal: str
    bank: str
    percentile: int
    fit_accuracy: float
    arm: Arm


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdPoint:
    """The locked policy at another threshold."""

    percentile: float
    """The share of fit rows on which the policy consults memory, in percent."""
    threshold: float
    fit_accuracy: float
    accuracy: Interval
    calls: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdSweep:
    chosen: ThresholdPoint
    points: tuple[ThresholdPoint, ...]
    fit_rows: int


def sweep_signals(data: StudyData) -> tuple[SignalPoint, ...]:
    """The gate by every signal that was measured on both sides."""
    measured = data.fit.table.column("none").signals
    tested = data.test.table.column("none").signals
    points = [_signal_point(data, signal) for signal in measured if signal in tested]
    return tuple(point for point in points if point is not None)


def _signal_point(data: StudyData, signal: str) -> SignalPoint | None:
    gate = tune_gate(data.fit, data.tuned_banks, signal)
    if gate is None:
        return None
    (bank,) = gate.policy.sources
    return SignalPoint(
        signal=signal,
        bank=bank,
        percentile=gate.percentile,
        fit_accuracy=gate.accuracy,
        arm=measure(data, f"gate-{bank} by {signal}", gate.policy),
    )


def sweep_thresholds(data: StudyData) -> ThresholdSweep | None:
    """The locked policy at p5…p100 of the fit side; None for a policy that has no threshold."""
    policy = data.lock.policy
    if not policy.sources or not np.isfinite(policy.threshold):
        return None
    thresholds = thresholds_of(data.fit, policy)
    points = [_point(data, policy, float(threshold)) for threshold in thresholds]
    return ThresholdSweep(
        chosen=_point(data, policy, policy.threshold),
        points=tuple(points),
        fit_rows=len(data.fit.table),
    )


def _point(data: StudyData, policy: Policy, threshold: float) -> ThresholdPoint:
    moved = replace(policy, threshold=threshold)
    fit, test = data.fit.replay(moved), data.test.replay(moved)
    return ThresholdPoint(
        percentile=100 * float(fit.consulted.mean()),
        threshold=threshold,
        fit_accuracy=float(fit.right.mean()),
        accuracy=share_of(test.right, data.clusters),
        calls=float(test.calls.mean()),
    )
