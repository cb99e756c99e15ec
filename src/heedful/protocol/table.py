"""One side of a ledger as arrays: a column for each source, a row for each task and seed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from heedful.errors import UsageError
from heedful.protocol.clusters import NO_CLUSTERS, Clusters
from heedful.protocol.ledger import Ledger
from heedful.records import PassRecord, SignalCost
from heedful.types import Side

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """The passes of one source, in the row order of the table."""

    passes: tuple[PassRecord, ...]
    decoded: Bools
    """Where there is an answer to judge: the source decoded a pass, and it did not fail."""
    right: Bools
    calls: Ints
    tokens: Ints
    signals: Mapping[str, Floats]
    """NaN where a signal was not measured."""
    guards: Mapping[str, Bools]
    """Where the guard passed."""
    signal_calls: Mapping[str, Ints]
    """Calls of a signal that asks questions of its own."""
    signal_tokens: Mapping[str, Ints]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    columns: Mapping[str, Column]
    cluster_of: Mapping[str, str] = field(default_factory=dict)
    """The cluster of each task that asks the same question as another."""

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def clusters(self) -> tuple[str, ...]:
        """The cluster of each row: rows of one cluster are one observation."""
        return tuple(self.cluster_of.get(task, task) for task in self.tasks)

    def column(self, source: str) -> Column:
        if source not in self.columns:
            raise UsageError(f"the ledger has no passes of {source!r}; it has {', '.join(self.columns)}")
        return self.columns[source]

    def rows(self, places: Sequence[int] | Ints) -> "Table":
        """A table of these rows."""
        at = np.asarray(places, dtype=np.int64)
        return Table(
            tasks=tuple(self.tasks[i] for i in at),
            seeds=tuple(self.seeds[i] for i in at),
            columns={name: _rows(column, at) for name, column in self.columns.items()},
            cluster_of=self.cluster_of,
        )


def read_table(
    ledger: Ledger,
    side: Side,
    tasks: Sequence[str],
    seeds: Sequence[int],
    clusters: Clusters = NO_CLUSTERS,
) -> Table:
    """The passes of a side for these tasks; a source with a missing pass is left out."""
    keys = [(seed, task) for seed in seeds for task in tasks]
    sources = dict.fromkeys(row.record.source for row in ledger.passes.values() if row.side == side)
    columns = {}
    for source in sources:
        found = [ledger.passes.get((side, seed, source, task)) for seed, task in keys]
        rows = [row for row in found if row is not None]
        if len(rows) == len(keys):
            columns[source] = make_column([row.record for row in rows], [row.right for row in rows])
    if "none" not in columns or not keys:
        raise UsageError(f"the {side} side is not recorded; run heedful study record first")
    return Table(
        tasks=tuple(t for _, t in keys),
        seeds=tuple(s for s, _ in keys),
        columns=columns,
        cluster_of=clusters.of_tasks(side),
    )


def make_column(passes: Sequence[PassRecord], right: Sequence[bool]) -> Column:
    signals = dict.fromkeys(name for row in passes for name in row.signals)
    guards = dict.fromkeys(name for row in passes for name in row.guards)
    asking = dict.fromkeys(name for row in passes for name in row.signal_costs)
    free = SignalCost(calls=0)
    costs = {s: [row.signal_costs.get(s, free) for row in passes] for s in asking}
    return Column(
        passes=tuple(passes),
        decoded=np.array([row.status == "decoded" for row in passes]),
        right=np.array(right, dtype=bool),
        calls=np.array([row.calls for row in passes]),
        tokens=np.array([row.usage.tokens for row in passes]),
        signals={s: np.array([row.signals.get(s, np.nan) for row in passes]) for s in signals},
        guards={g: np.array([row.guards.get(g, "") == "" for row in passes]) for g in guards},
        signal_calls={s: np.array([cost.calls for cost in costs[s]]) for s in asking},
        signal_tokens={s: np.array([cost.usage.tokens for cost in costs[s]]) for s in asking},
    )


def _rows(column: Column, at: Ints) -> Column:
    return Column(
        passes=tuple(column.passes[i] for i in at),
        decoded=column.decoded[at],
        right=column.right[at],
        calls=column.calls[at],
        tokens=column.tokens[at],
        signals={name: values[at] for name, values in column.signals.items()},
        guards={name: values[at] for name, values in column.guards.items()},
        signal_calls={name: values[at] for name, values in column.signal_calls.items()},
        signal_tokens={name: values[at] for name, values in column.signal_tokens.items()},
    )


def cluster_folds(
    clusters: Sequence[str], count: int, rng: np.random.Generator
) -> Iterator[tuple[Ints, Ints]]:
    """For each fold, the rows outside and inside it; the rows of a cluster stay together."""
    names = sorted(set(clusters))
    count = min(count, len(names))
    fold_of = {names[at]: place % count for place, at in enumerate(rng.permutation(len(names)))}
    folds = np.array([fold_of[cluster] for cluster in clusters])
    for fold in range(count):
        yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
