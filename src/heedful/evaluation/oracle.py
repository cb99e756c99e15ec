"""The accuracy of a perfect choice among the recorded answers, and how much of it was reached."""

from dataclasses import dataclass

from heedful.evaluation.arm_results import Arm
from heedful.evaluation.study_data import StudyData
from heedful.stats.intervals import Interval, share_of
from heedful.stats.paired import gap_close


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    routed: Interval
    """Right if the baseline, the first pass or, where the policy consults, any candidate is right."""
    all_banks: Interval
    """Right if the baseline or the pass of any bank that a policy could ask is right."""
    gap_close: float | None
    """(accuracy − baseline) / (routed oracle − baseline); None if there is no gap."""
    gap_close_all: float | None


def find_oracle(data: StudyData, arm: Arm) -> Oracle:
    """The oracles of the locked policy."""
    test, policy = data.test, arm.policy
    consulted = test.replay(policy).consulted
    routed = test.base_right | test.first(policy.first).right
    for source in policy.sources[: policy.budget.passes]:
        column = test.table.column(source)
        routed = routed | (consulted & column.decoded & column.right)
    anywhere = test.base_right
    for bank in data.tuned_banks:
        column = test.table.column(bank)
        anywhere = anywhere | (column.decoded & column.right)
    base = float(test.base_right.mean())
    found, widest = share_of(routed, data.clusters), share_of(anywhere, data.clusters)
    return Oracle(
        routed=found,
        all_banks=widest,
        gap_close=gap_close(arm.accuracy.value, base, found.value),
        gap_close_all=gap_close(arm.accuracy.value, base, widest.value),
    )
