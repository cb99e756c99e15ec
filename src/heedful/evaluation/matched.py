"""What the gain is made of: value policies with and without memory at the same number of calls."""

from dataclasses import dataclass

from heedful.evaluation.arm_results import Arm, PairedChange, compare, measure
from heedful.evaluation.study_data import StudyData
from heedful.protocol.matched import DIFFERENCES


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedDifference:
    """The first policy minus the second, row by row."""

    first: str
    second: str
    paired: PairedChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """The policies of the lock on the test side; `paired` of an arm is its Δ against no memory."""

    arms: tuple[Arm, ...]
    differences: tuple[MatchedDifference, ...]

    def arm(self, name: str) -> Arm:
        return next(arm for arm in self.arms if arm.name == name)


def compare_matched(data: StudyData) -> Matched | None:
    """None if the lock has no such policies, or a source of theirs is incomplete on the test side."""
    locked = data.lock.fit.matched
    used = {source for family in locked.values() for source in family.policy.sources}
    if not locked or not all(map(data.tested, used)):
        return None
    arms = {name: measure(data, name, family.policy) for name, family in locked.items()}
    return Matched(
        arms=tuple(arms.values()),
        differences=tuple(
            MatchedDifference(
                first=first, second=second, paired=compare(data, arms[first].right, arms[second].right)
            )
            for first, second in DIFFERENCES
        ),
    )
