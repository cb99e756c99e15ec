"""The data of a report: the lock, the events, and both sides of the ledger as tables."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from heedful.errors import LockError, UsageError
from heedful.protocol.cluster_file import locked_clusters
from heedful.protocol.clusters import Clusters
from heedful.protocol.crossfit_file import Crossfit, usable_crossfit
from heedful.protocol.events import OPENED, StudyEvent, read_events
from heedful.protocol.ledger import Ledger, Pass
from heedful.protocol.lock import Lock, read_lock
from heedful.protocol.openings import refuse_changed_test_passes, refuse_unopened
from heedful.protocol.passes_digest import has_fit_passes
from heedful.protocol.replay import Replayer
from heedful.protocol.study_texts import StudyTexts
from heedful.protocol.table import Bools, Ints, Table, read_table
from heedful.protocol.workspace import Workspace
from heedful.types import Side

SIDES: tuple[Side, Side] = ("fit", "test")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyData:
    """Everything the report may use."""

    lock: Lock
    repeats: Clusters
    events: tuple[StudyEvent, ...]
    fit: Replayer
    test: Replayer
    passes: Mapping[Side, Sequence[Pass]]
    """All passes decoded for the study's rows, including incomplete sources and earlier prompts."""
    failed: Mapping[Side, Mapping[str, int]]
    """Passes that the endpoint refused, by side and source; they count as no answer."""
    crossfit: Crossfit | None
    """The cross-fitted result, if it was computed from these passes."""
    crossfit_problem: str
    """Why there is one that is left out; empty if there is no such one."""
    damaged: int
    """Damaged rows of the ledger, which were skipped; 0 if no pass of the test side is missing."""
    texts: StudyTexts | None = None
    """The user's own questions and entries; None: the report shows no texts."""

    @property
    def banks(self) -> tuple[str, ...]:
        """Memory sources that are complete on the test side."""
        return tuple(name for name, kind in self.lock.kinds.items() if kind == "memory" and self.tested(name))

    @property
    def tuned_banks(self) -> tuple[str, ...]:
        """Banks that are complete on both sides, so policies that use them can be tuned."""
        return tuple(name for name in self.banks if name in self.fit.table.columns)

    @property
    def controls(self) -> tuple[str, ...]:
        """Memory-free sources that are complete on the test side."""
        return tuple(name for name, kind in self.lock.kinds.items() if kind != "memory" and self.tested(name))

    @property
    def missing(self) -> tuple[str, ...]:
        """Sources of the study that are incomplete on the test side."""
        return tuple(name for name in self.lock.kinds if not self.tested(name))

    @property
    def openings(self) -> int:
        return sum(event.event == OPENED for event in self.events)

    @property
    def clusters(self) -> tuple[str, ...]:
        """The cluster of each test row: the unit of every interval and test."""
        return self.test.table.clusters

    def clusters_of(self, rows: Ints) -> list[str]:
        """The clusters of some test rows."""
        clusters = self.clusters  # computed once, not once per row
        return [clusters[row] for row in rows]

    @property
    def once(self) -> Bools:
        """The first row of each cluster: further seeds and repeated questions are not independent."""
        first = np.unique(np.array(self.clusters), return_index=True)[1]
        return np.isin(np.arange(len(self.clusters)), first)

    def graded_passes(self) -> Iterator[Pass]:
        """The newest passes of both sides with their grades."""
        for side, replayer in zip(SIDES, (self.fit, self.test), strict=True):
            table = replayer.table
            for column in table.columns.values():
                rows = zip(table.seeds, table.tasks, column.passes, column.right, strict=True)
                for seed, task, record, right in rows:
                    yield Pass(side=side, seed=seed, task=task, record=record, right=bool(right))

    def tested(self, source: str) -> bool:
        return source in self.test.table.columns

    def rng(self) -> np.random.Generator:
        """A generator seeded by the lock: equal answers get equal intervals."""
        return np.random.default_rng(int(self.lock.lock[:16], 16))


def read_study_data(space: Workspace, texts: StudyTexts | None = None) -> StudyData:
    """Read a study's folder; refuses a lock or fit passes that changed since the lock was made."""
    lock = read_lock(space.lock)
    ledger = Ledger(space.ledger)
    if not has_fit_passes(lock.digests, ledger):
        raise LockError(
            f"the lock of {lock.study} is broken: the fit passes in the ledger changed since {lock.locked_at}"
        )
    clusters = locked_clusters(space, lock)
    fit, test = (Replayer(_side(ledger, side, lock, clusters)) for side in SIDES)
    refuse_unopened(space, lock)
    refuse_changed_test_passes(space, lock, ledger)
    crossfit, problem = usable_crossfit(space, lock)
    return StudyData(
        lock=lock,
        repeats=clusters,
        events=tuple(read_events(space.events)),
        fit=fit,
        test=test,
        passes={"fit": _passes(ledger, "fit", lock), "test": _passes(ledger, "test", lock)},
        failed={side: _failed(ledger, side, lock) for side in SIDES},
        crossfit=crossfit,
        crossfit_problem=problem,
        damaged=len(ledger.damage) if lock.kinds.keys() - test.table.columns.keys() else 0,
        texts=texts,
    )


def _passes(ledger: Ledger, side: Side, lock: Lock) -> list[Pass]:
    tasks = set(lock.splits[side])
    return [row for row in ledger.distinct() if row.side == side and row.task in tasks]


def _failed(ledger: Ledger, side: Side, lock: Lock) -> Mapping[str, int]:
    tasks = set(lock.splits[side])
    rows = (row for row in ledger.passes.values() if row.side == side and row.task in tasks)
    return dict(Counter(row.record.source for row in rows if row.record.status == "failed"))


def _side(ledger: Ledger, side: Side, lock: Lock, clusters: Clusters) -> Table:
    try:
        return read_table(ledger, side, lock.splits[side], lock.seeds, clusters)
    except UsageError as error:
        step = "record" if side == "fit" else "test"
        raise UsageError(
            f"the {side} side is incomplete in the ledger, so there is nothing to report: "
            f"run heedful study {step} (recorded passes are kept)"
        ) from error
