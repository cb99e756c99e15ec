"""What other harm limits would have certified, and what their policies do on the test side."""

from dataclasses import dataclass

from heedful.evaluation.arm_results import Arm, measure
from heedful.evaluation.study_data import StudyData
from heedful.protocol.limits import LimitPreview, preview_limits


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitResult:
    preview: LimitPreview
    arm: Arm | None
    """The policy on the test side; None if there is none, or if a source of it is incomplete there."""


def measure_limits(data: StudyData) -> tuple[LimitResult, ...]:
    """The policy that each limit would have certified; the tests of the lock suffice."""
    return tuple(
        LimitResult(preview=preview, arm=_arm(data, preview))
        for preview in preview_limits(data.lock.fit.certificates)
    )


def _arm(data: StudyData, preview: LimitPreview) -> Arm | None:
    policy = preview.policy
    if policy is None or not all(map(data.tested, (policy.first, *policy.sources))):
        return None
    return measure(data, f"limit-{preview.limit:g}", policy)
