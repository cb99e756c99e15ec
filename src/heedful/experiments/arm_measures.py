"""The performance of arms with another bank on the same rows, with intervals over clusters of tasks."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from heedful.protocol.replay import Replayer
from heedful.protocol.table import Table
from heedful.stats.bootstrap import paired_interval
from heedful.stats.intervals import Interval, share_of
from heedful.stats.paired import PairedCounts, count_pairs
from heedful.types import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmMeasure:
    """One arm with one bank."""

    policy: Policy
    counts: PairedCounts
    """Rows, compared with the memory-free pass."""
    right: Interval
    hurt: Interval
    """Share of rows that were right without memory and are wrong in the end."""
    change: Interval
    """Share right, minus that of the same arm with the original bank."""
    calls: float
    """Per row."""
    tokens: float


def measure_arms(table: Table, original: Table, policies: Mapping[str, Policy]) -> dict[str, ArmMeasure]:
    """Every arm on a table with another bank's passes, compared with the study's own table."""
    after, before = Replayer(table), Replayer(original)
    return {arm: _measured(after, before, policy) for arm, policy in policies.items()}


def _measured(after: Replayer, before: Replayer, policy: Policy) -> ArmMeasure:
    clusters = after.table.clusters
    done = after.replay(policy)
    difference = done.right.astype(float) - before.replay(policy).right
    return ArmMeasure(
        policy=policy,
        counts=count_pairs(after.base_right.tolist(), done.right.tolist()),
        right=share_of(done.right, clusters),
        hurt=share_of(after.base_right & ~done.right, clusters),
        change=paired_interval(difference, clusters, np.random.default_rng(0)),
        calls=float(done.calls.mean()),
        tokens=float(done.tokens.mean()),
    )
