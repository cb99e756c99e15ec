"""Harm on the test side: right answers without memory that an arm gets wrong, with an exact bound.

There are two references for "right without memory". The shared first pass is the recorded one: where a
policy rolls back, it reuses that pass, so the decoder's noise cannot count against it. An independent
decode of the same prompt charges the noise to every arm alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.evaluation.arm_results import HEEDFUL, Arm
from heedful.evaluation.study_data import StudyData
from heedful.protocol.table import Bools
from heedful.stats.risk import clopper_pearson

LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class HarmBound:
    """Different questions that an arm hurts in any row, and the share that it hurts at most (95%)."""

    hurts: int
    tasks: int
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmHarm:
    """The harm of one arm against both references."""

    arm: str
    shared: HarmBound
    """Against the recorded first pass."""
    independent: HarmBound | None
    """Against another decode of the first prompt; None if there is none, or if the arm is that decode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Harm:
    reference: str | None
    """The control that decoded the first prompt once more; None if none was recorded."""
    arms: tuple[ArmHarm, ...]

    def of(self, name: str) -> ArmHarm:
        return next(one for one in self.arms if one.arm == name)

    @property
    def heedful(self) -> ArmHarm:
        """Of the locked policy."""
        return self.of(HEEDFUL)


def measure_harm(data: StudyData, arms: Sequence[Arm]) -> Harm:
    """The harm of every arm on the test side."""
    name = independent_decode(data)
    again = None if name is None else data.test.table.column(name).right
    return Harm(
        reference=name,
        arms=tuple(
            ArmHarm(
                arm=arm.name,
                shared=harm_bound(data, data.test.base_right, arm.right),
                independent=None
                if again is None or name in arm.policy.sources
                else harm_bound(data, again, arm.right),
            )
            for arm in arms
        ),
    )


def independent_decode(data: StudyData) -> str | None:
    """The control that decodes the first prompt again, greedily as the first pass."""
    return next(
        (
            name
            for name in data.controls
            if data.lock.kinds[name] == "retry" and not data.lock.sources.get(name, {}).get("temperature", 0)
        ),
        None,
    )


def harm_bound(data: StudyData, reference: Bools, right: Bools) -> HarmBound:
    """Questions that are right in the reference and wrong in the arm; the rows of a cluster count once."""
    pairs = zip(data.clusters, reference & ~right, strict=True)
    hurts, tasks = len({cluster for cluster, hurt in pairs if hurt}), len(set(data.clusters))
    return HarmBound(hurts=hurts, tasks=tasks, upper=clopper_pearson(hurts, tasks, LEVEL, "upper")[1])
