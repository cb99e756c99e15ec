"""The frontier of value policies: accuracy against cost for other prices of a call."""

from dataclasses import dataclass, replace

from heedful.evaluation.arm_results import Arm, measure
from heedful.evaluation.families import families_of
from heedful.evaluation.study_data import StudyData
from heedful.protocol.fit_result import PRIOR, VALUE

PRICES = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2)
"""λ: what a call, or 1,000 tokens, costs in accuracy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPoint:
    """A value policy of the lock at one price; its estimators do not depend on it."""

    family: str
    price: float
    arm: Arm


def trace_frontier(data: StudyData) -> tuple[FrontierPoint, ...]:
    """The value policy and the prior of the lock, chosen without a promise, at every price."""
    fitted = data.lock.fit.unlimited or data.lock.fit
    points = []
    for name, family in families_of(fitted).items():
        rule = family.policy.value
        if name not in (VALUE, PRIOR) or rule is None or not all(map(data.tested, family.policy.sources)):
            continue
        for price in PRICES:
            policy = replace(family.policy, value=replace(rule, cost=price))
            points.append(FrontierPoint(family=name, price=price, arm=measure(data, name, policy)))
    return tuple(points)
