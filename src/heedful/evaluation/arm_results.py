"""Arms: policies replayed on the test side, measured against the model without memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from heedful.errors import UsageError
from heedful.evaluation.study_data import StudyData
from heedful.protocol.matched import COMPUTE
from heedful.protocol.replay import PolicyReplay, Replayer
from heedful.protocol.table import Bools, Floats
from heedful.records import PassRecord
from heedful.stats.bootstrap import paired_interval
from heedful.stats.intervals import Interval, share_of
from heedful.stats.mcnemar import mcnemar_by_task
from heedful.stats.paired import count_pairs
from heedful.types import Policy

BASELINE, HEEDFUL, UNLIMITED, VOTE = "baseline", "heedful", "unlimited", "vote"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedChange:
    """The difference between two sets of answers to the same rows."""

    helps: int
    hurts: int
    delta: Interval
    p: float

    @property
    def clear(self) -> bool:
        """Whether both the interval and the test separate the difference from 0."""
        return not self.delta.low <= 0 <= self.delta.high and self.p < 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A policy on the test side; rates are per row, `paired` is against the baseline."""

    name: str
    policy: Policy
    right: Bools
    """Row by row, for paired comparisons with other arms."""
    accuracy: Interval
    paired: PairedChange
    consulted: float
    calls: float
    tokens: float
    seconds: float

    @property
    def n(self) -> int:
        return len(self.right)


def main_arms(data: StudyData) -> tuple[Arm, ...]:
    """The baseline, the controls, every bank in every prompt, and the locked policy last.

    If that policy was chosen under a harm limit, the policy chosen without the limit comes before it.
    """
    named = {BASELINE: Policy()}
    for control in data.controls:
        name = f"control-{control}" if control in (BASELINE, HEEDFUL, UNLIMITED) else control
        named[name] = _control(control, data.lock.kinds[control])
    if VOTE not in named and (vote := _vote_of_samples(data)):
        named[VOTE] = vote
    for bank in data.banks:
        named[f"always-{bank}"] = Policy(first=bank, guards=())
    unlimited = data.lock.fit.unlimited
    if unlimited is not None and all(map(data.tested, (unlimited.policy.first, *unlimited.policy.sources))):
        named[UNLIMITED] = unlimited.policy
    policy = data.lock.policy
    if absent := [name for name in (policy.first, *policy.sources) if not data.tested(name)]:
        raise UsageError(
            f"the locked policy uses {', '.join(absent)}, whose test side is incomplete in the ledger: "
            "run heedful study test (recorded passes are kept)"
        )
    named[HEEDFUL] = policy
    return tuple(measure(data, name, policy) for name, policy in named.items())


def _control(name: str, kind: str) -> Policy:
    """A control that is always accepted; a vote uses no first pass, so it is not charged for one."""
    if kind == "vote":
        return Policy(first=name, guards=())
    return Policy(threshold=inf, sources=(name,), guards=())


def _vote_of_samples(data: StudyData) -> Policy | None:
    """The majority of the first pass and two recorded samples, without passes of its own.

    Where both samples agree, their answer is the majority; otherwise the first pass has it, or all three
    differ and the first pass stands. The second sample is not asked where the first one repeats the answer.
    """
    compute = data.lock.fit.matched.get(COMPUTE)
    samples = compute.policy.sources[:2] if compute else ()
    if len(samples) < 2 or not all(map(data.tested, samples)):
        return None
    return Policy(threshold=inf, sources=samples, combine="agree", guards=())


def measure(data: StudyData, name: str, policy: Policy) -> Arm:
    """Replay a policy on the test side."""
    done = data.test.replay(policy)
    return Arm(
        name=name,
        policy=policy,
        right=done.right,
        accuracy=share_of(done.right, data.clusters),
        paired=compare(data, done.right, data.test.base_right),
        consulted=float(done.consulted.mean()),
        calls=float(done.calls.mean()),
        tokens=float(done.tokens.mean()),
        seconds=float(seconds_of(data.test, policy, done).mean()),
    )


def compare(data: StudyData, right: Bools, other: Bools) -> PairedChange:
    """The paired difference `right` − `other` over the test rows."""
    counts = count_pairs(other.tolist(), right.tolist())
    differences = right.astype(np.float64) - other
    return PairedChange(
        helps=counts.helps,
        hurts=counts.hurts,
        delta=paired_interval(differences, data.clusters, data.rng()),
        p=mcnemar_by_task(differences, data.clusters),
    )


def seconds_of(replayer: Replayer, policy: Policy, done: PolicyReplay) -> Floats:
    """Seconds of the passes that a policy used on each row: the first, and each decoded second pass."""
    total = _seconds(replayer.first(policy.first).passes)
    for source, decoded in zip(policy.sources, done.decoded, strict=False):
        total = total + np.where(decoded, _seconds(replayer.table.column(source).passes), 0.0)
    return total


def _seconds(passes: Sequence[PassRecord]) -> Floats:
    return np.array([row.seconds for row in passes])
