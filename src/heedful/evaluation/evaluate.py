"""The evaluation of a study: every number of the report, from the ledger and the lock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from heedful.evaluation.arm_results import BASELINE, HEEDFUL, UNLIMITED, Arm, PairedChange, compare, main_arms
from heedful.evaluation.components import Isolation, isolate
from heedful.evaluation.confidence_bins import ConfidenceBin, CoveragePoint, bin_rows, keep_surest
from heedful.evaluation.cost import Cost, count_cost
from heedful.evaluation.diagnostics import Separability, SourceCalibration, calibrate, separate
from heedful.evaluation.entry_effects import BankEffects, weigh_entries
from heedful.evaluation.families import FamilyResult, compare_families
from heedful.evaluation.frontier import FrontierPoint, trace_frontier
from heedful.evaluation.harm import Harm, measure_harm
from heedful.evaluation.limits import LimitResult, measure_limits
from heedful.evaluation.matched import Matched, compare_matched
from heedful.evaluation.oracle import Oracle, find_oracle
from heedful.evaluation.reliability import Reliability, check_estimators
from heedful.evaluation.study_data import StudyData
from heedful.evaluation.study_words import StudyWords, words_of
from heedful.evaluation.sweeps import SignalPoint, ThresholdSweep, sweep_signals, sweep_thresholds
from heedful.protocol.clusters import Clusters
from heedful.protocol.crossfit_file import Crossfit
from heedful.protocol.events import StudyEvent
from heedful.protocol.lock import Lock
from heedful.types import Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """The locked policy compared with another arm: positive differences favour the policy."""

    arm: Arm
    kind: Literal["always", "control", "unlimited"]
    """Memory in every prompt, a control without memory, or the policy chosen without the harm limit."""
    paired: PairedChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    lock: Lock
    events: tuple[StudyEvent, ...]
    openings: int
    missing: tuple[str, ...]
    """Sources of the study whose test passes are incomplete."""
    failed: Mapping[Side, Mapping[str, int]]
    """Passes that the endpoint refused, by side and source."""
    damaged: int
    tasks: int
    clusters: int
    """Clusters of the test questions: the independent observations."""
    repeats: Clusters
    crossfit: Crossfit | None
    crossfit_problem: str
    arms: tuple[Arm, ...]
    oracle: Oracle
    harm: Harm
    families: tuple[FamilyResult, ...]
    matched: Matched | None
    """Memory against compute; None if the lock has no policies over samples."""
    frontier: tuple[FrontierPoint, ...]
    """Value policies at other prices of a call; empty if the lock holds none."""
    limits: tuple[LimitResult, ...]
    """What other harm limits would have certified; empty without a harm limit."""
    alternatives: tuple[Alternative, ...]
    """Highest accuracy first."""
    isolation: Isolation
    signals: tuple[SignalPoint, ...]
    thresholds: ThresholdSweep | None
    calibration: tuple[SourceCalibration, ...]
    separability: tuple[Separability, ...]
    bins: tuple[ConfidenceBin, ...]
    coverage: tuple[CoveragePoint, ...]
    reliability: tuple[Reliability, ...]
    """Of the estimators of value policies; empty if the lock holds none."""
    entries: tuple[BankEffects, ...]
    cost: Cost
    words: StudyWords | None
    """None: the study's texts are not known, or are not to be shown."""

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


def evaluate(data: StudyData) -> Evaluation:
    """Compute every number of the report."""
    arms = main_arms(data)
    policy = arms[-1]
    return Evaluation(
        lock=data.lock,
        events=data.events,
        openings=data.openings,
        missing=data.missing,
        failed=data.failed,
        damaged=data.damaged,
        tasks=len(set(data.test.table.tasks)),
        clusters=len(set(data.clusters)),
        repeats=data.repeats,
        crossfit=data.crossfit,
        crossfit_problem=data.crossfit_problem,
        arms=arms,
        oracle=find_oracle(data, policy),
        harm=measure_harm(data, arms),
        families=compare_families(data),
        matched=compare_matched(data),
        frontier=trace_frontier(data),
        limits=measure_limits(data),
        alternatives=_alternatives(data, arms),
        isolation=isolate(data),
        signals=sweep_signals(data),
        thresholds=sweep_thresholds(data),
        calibration=calibrate(data),
        separability=separate(data),
        bins=bin_rows(data),
        coverage=keep_surest(data),
        reliability=check_estimators(data),
        entries=weigh_entries(data),
        cost=count_cost(data),
        words=None if data.texts is None else words_of(data, data.texts),
    )


def _kind_of(arm: Arm, banks: Sequence[str]) -> Literal["always", "control", "unlimited"]:
    if arm.name == UNLIMITED:
        return "unlimited"
    return "always" if arm.policy.first in banks else "control"


def _alternatives(data: StudyData, arms: tuple[Arm, ...]) -> tuple[Alternative, ...]:
    *others, policy = arms[1:]
    found = [
        Alternative(
            arm=arm,
            kind=_kind_of(arm, data.banks),
            paired=compare(data, policy.right, arm.right),
        )
        for arm in others
    ]
    return tuple(sorted(found, key=lambda one: (-one.arm.accuracy.value, one.arm.calls, one.arm.name)))
