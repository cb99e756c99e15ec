"""A study evaluated: every number of the report, from the ledger and the lock."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from heedful.protocol.events import StudyEvent
from heedful.protocol.lock import Lock
from heedful.report.arms import BASELINE, HEEDFUL, UNLIMITED, Arm, Paired, compare, main_arms
from heedful.report.components import Isolation, isolate
from heedful.report.confidence import Bin, Kept, bin_rows, keep_surest
from heedful.report.cost import Cost, count_cost
from heedful.report.diagnostics import Separability, SourceCalibration, calibrate, separate
from heedful.report.entries import BankEffects, weigh_entries
from heedful.report.material import Material
from heedful.report.oracle import Oracle, find_oracle
from heedful.report.sweeps import SignalPoint, ThresholdSweep, sweep_signals, sweep_thresholds


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """The locked policy against another arm: positive is in the policy's favour."""

    arm: Arm
    kind: Literal["always", "control", "unlimited"]
    """Memory in every prompt, a control without memory, or the policy chosen without the harm limit."""
    paired: Paired


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    lock: Lock
    events: tuple[StudyEvent, ...]
    openings: int
    missing: tuple[str, ...]
    """Sources of the study without a whole set of test passes."""
    damaged: int
    tasks: int
    arms: tuple[Arm, ...]
    oracle: Oracle
    alternatives: tuple[Alternative, ...]
    """Most often right first."""
    isolation: Isolation
    signals: tuple[SignalPoint, ...]
    thresholds: ThresholdSweep | None
    calibration: tuple[SourceCalibration, ...]
    separability: tuple[Separability, ...]
    bins: tuple[Bin, ...]
    coverage: tuple[Kept, ...]
    entries: tuple[BankEffects, ...]
    cost: Cost

    @property
    def baseline(self) -> Arm:
        return next(arm for arm in self.arms if arm.name == BASELINE)

    @property
    def heedful(self) -> Arm:
        return next(arm for arm in self.arms if arm.name == HEEDFUL)

    @property
    def every_arm(self) -> tuple[Arm, ...]:
        """The main arms and the components."""
        return (*self.arms, *(component.arm for component in self.isolation.components))


def evaluate(material: Material) -> Evaluation:
    """Replay and measure everything."""
    arms = main_arms(material)
    policy = arms[-1]
    return Evaluation(
        lock=material.lock,
        events=material.events,
        openings=material.openings,
        missing=material.missing,
        damaged=material.damaged,
        tasks=len(set(material.tasks)),
        arms=arms,
        oracle=find_oracle(material, policy),
        alternatives=_alternatives(material, arms),
        isolation=isolate(material),
        signals=sweep_signals(material),
        thresholds=sweep_thresholds(material),
        calibration=calibrate(material),
        separability=separate(material),
        bins=bin_rows(material),
        coverage=keep_surest(material),
        entries=weigh_entries(material),
        cost=count_cost(material),
    )


def _kind_of(arm: Arm, banks: Sequence[str]) -> Literal["always", "control", "unlimited"]:
    if arm.name == UNLIMITED:
        return "unlimited"
    return "always" if arm.policy.first in banks else "control"


def _alternatives(material: Material, arms: tuple[Arm, ...]) -> tuple[Alternative, ...]:
    *others, policy = arms[1:]
    found = [
        Alternative(
            arm=arm,
            kind=_kind_of(arm, material.banks),
            paired=compare(material, policy.right, arm.right),
        )
        for arm in others
    ]
    return tuple(sorted(found, key=lambda one: (-one.arm.accuracy.value, one.arm.calls, one.arm.name)))
