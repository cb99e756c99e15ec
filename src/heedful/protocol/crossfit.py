"""Cross-fitting: each row of a study is judged by a policy fitted without the row and its cluster.

It measures the procedure that chooses a policy, on every recorded row, and needs no new pass. The
policies of the folds share most of their training rows. The intervals treat them as fixed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from heedful.protocol.clusters import Clusters
from heedful.protocol.fit import cross_validate, tune
from heedful.protocol.fit_result import family_name
from heedful.protocol.harm import fit_within_limit
from heedful.protocol.matched import fit_matched
from heedful.protocol.prior import study_prior
from heedful.protocol.replay import Replayer
from heedful.protocol.study import VALUE, FitSettings
from heedful.protocol.table import Bools, Column, Ints, Table, cluster_folds, make_column
from heedful.stats.bootstrap import paired_interval
from heedful.stats.intervals import Interval
from heedful.stats.mcnemar import mcnemar_by_task
from heedful.stats.paired import count_pairs
from heedful.types import Policy, Side

PROCEDURE, UNLIMITED = "heedful", "unlimited"
"""The study's own procedure, and the one without its harm limit."""
OnFold = Callable[[int, int], None]
"""Called with the number of finished folds and of all folds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossfitArm:
    """The policies of all folds, each on its own fold, against the model without memory."""

    n: int
    accuracy: float
    delta: Interval
    p: float
    helps: int
    hurts: int
    calls: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossfitRows:
    """What the policies of the folds did, row by row."""

    right: Bools
    calls: Ints
    policies: tuple[Policy, ...]
    """One per fold."""


def join_sides(sides: Mapping[Side, Table], clusters: Clusters) -> Table:
    """All rows of a study in one table, with the sources that are recorded on both sides."""
    tables = list(sides.values())
    shared = [name for name in tables[0].columns if all(name in table.columns for table in tables)]
    return Table(
        tasks=tuple(_name(side, task) for side, table in sides.items() for task in table.tasks),
        seeds=tuple(seed for table in tables for seed in table.seeds),
        columns={name: _joined([table.column(name) for table in tables]) for name in shared},
        cluster_of={
            _name(side, task): f"cluster {number}"
            for number, cluster in enumerate(clusters.clusters)
            for side in sides
            for task in cluster.on(side)
        },
    )


def _name(side: Side, task: str) -> str:
    """Two sides may use the same id for different questions."""
    return f"{side} {task}"


def _joined(columns: Sequence[Column]) -> Column:
    passes = [row for column in columns for row in column.passes]
    return make_column(passes, [bool(right) for column in columns for right in column.right])


def crossfit(
    table: Table,
    banks: Sequence[str],
    settings: FitSettings,
    folds: int,
    on_fold: OnFold,
    benchmark: str = "",
    samples: Sequence[str] = (),
) -> dict[str, CrossfitRows]:
    """Repeat the study's procedure for each fold on the rows outside it, and replay it inside.

    `benchmark` is the one that a prior must not have seen; `samples` are memory-free sources.
    """
    right: dict[str, Bools] = {}
    calls: dict[str, Ints] = {}
    policies: dict[str, list[Policy]] = {}
    parts = list(cluster_folds(table.clusters, folds, np.random.default_rng([settings.seed, 3])))
    for number, (rest, fold) in enumerate(parts, start=1):
        judge = Replayer(table.rows(fold))
        for name, policy in fitted_policies(table.rows(rest), banks, settings, benchmark, samples).items():
            done = judge.replay(policy)
            right.setdefault(name, np.zeros(len(table), dtype=bool))[fold] = done.right
            calls.setdefault(name, np.zeros(len(table), dtype=np.int64))[fold] = done.calls
            policies.setdefault(name, []).append(policy)
        on_fold(number, len(parts))
    return {
        name: CrossfitRows(right=right[name], calls=calls[name], policies=tuple(policies[name]))
        for name in policies
    }


def fitted_policies(
    table: Table,
    banks: Sequence[str],
    settings: FitSettings,
    benchmark: str = "",
    samples: Sequence[str] = (),
) -> dict[str, Policy]:
    """The policies that the study's procedure chooses on these rows, by name."""
    prior = study_prior(table, banks, settings, benchmark)
    kinds = [score.kind for score in cross_validate(table, banks, settings, prior)]
    tuned = tune(table, banks, settings, prior)[0]
    chosen = {PROCEDURE: tuned[kinds[0]].policy}
    if settings.certifies:
        limited = fit_within_limit(table, banks, settings, prior).policy
        chosen = {PROCEDURE: limited, UNLIMITED: chosen[PROCEDURE]}
    if VALUE in settings.families:
        best: dict[str, Policy] = {}
        for kind in kinds:
            best.setdefault(family_name(kind), tuned[kind].policy)
        chosen |= best
    matched = fit_matched(table, banks, samples, settings, benchmark)
    return chosen | {name: family.policy for name, family in matched.items()}


def measure_rows(table: Table, rows: CrossfitRows, rng: np.random.Generator) -> CrossfitArm:
    """The counts of the folds, with an interval and a test over clusters."""
    base = table.column("none").right
    counts = count_pairs(base.tolist(), rows.right.tolist())
    differences = rows.right.astype(np.float64) - base
    return CrossfitArm(
        n=len(table),
        accuracy=float(rows.right.mean()),
        delta=paired_interval(differences, table.clusters, rng),
        p=mcnemar_by_task(differences, table.clusters),
        helps=counts.helps,
        hurts=counts.hurts,
        calls=float(rows.calls.mean()),
    )


def paired_difference(
    table: Table, first: CrossfitRows, second: CrossfitRows, rng: np.random.Generator
) -> Interval:
    """The first minus the second, row by row, with an interval over clusters."""
    return paired_interval(first.right.astype(np.float64) - second.right, table.clusters, rng)
