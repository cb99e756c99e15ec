"""The same study with other banks; unchanged passes are not decoded again."""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from heedful import arms
from heedful.errors import UsageError
from heedful.experiments.fixed_retrieval import Sources, frozen
from heedful.memory.bank import MemoryBank
from heedful.memory.formats import write_entries
from heedful.models.fleet import slots_of
from heedful.ports import Model, Source
from heedful.protocol.cluster_file import study_clusters
from heedful.protocol.events import OPENED, log_event, read_events
from heedful.protocol.ledger import Ledger
from heedful.protocol.lock import read_lock, study_policy
from heedful.protocol.record import Recorder, Recording, RecordingProgress, outdated
from heedful.protocol.setup import StudySetup
from heedful.protocol.table import Table, read_table
from heedful.protocol.workflow import now, recording_of
from heedful.protocol.workspace import Workspace, write_text
from heedful.types import Entry, Policy, Recall, Side

Tell = Callable[[str, RecordingProgress], None]
"""Reports the progress of a recording, by its title."""


def bank_source(setup: StudySetup, wanted: str | None) -> str:
    """The wanted source, or the study's only one with a bank."""
    names = list(setup.banks)
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted not in names:
        problem = "several banks" if wanted is None else f"no bank {wanted!r}"
        raise UsageError(f"the study {setup.study.name} has {problem}: give --source {'|'.join(names)}")
    return wanted


def with_bank(setup: StudySetup, source: str, entries: Sequence[Entry]) -> StudySetup:
    """The setup with other entries in one of its banks."""
    old = setup.banks[source]
    bank = MemoryBank(old.name, entries, method=old.method, threshold=old.threshold)
    return replace(setup, banks={**setup.banks, source: bank})


def only(setup: StudySetup, side: Side, source: str) -> Sources:
    """The memory-free pass and one source of a setup."""

    def named(seed: int) -> Mapping[str, Source]:
        every = setup.sources(side, seed)
        if source not in every:
            raise UsageError(f"the study {setup.study.name} does not ask {source} on the {side} side")
        return {name: every[name] for name in ("none", source)}

    return named


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A table with the passes of another bank, and their cost."""

    table: Table
    ledger: Ledger
    changed: int
    """Model calls of the passes whose prompt changed."""
    calls: int
    """Calls made for them now; the others were already recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentOrigin:
    """The study, rows and command behind a result."""

    study: str
    benchmark: str
    model: str
    source: str
    side: Side
    tasks: int
    seeds: tuple[int, ...]
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """An experiment on the bank of one of a study's sources."""

    name: str
    """Also the name of its folder within the study's folder."""
    space: Workspace
    setup: StudySetup
    model: Model
    source: str
    tell: Tell
    side: Side = "fit"
    rows: int | None = None
    """Limits the number of tasks, drawn by the seed."""
    seed: int = 0

    def origin(self, command: str) -> ExperimentOrigin:
        """What a reader must know to judge the result."""
        tasks = len(self.setup.splits.asked(self.side))
        return ExperimentOrigin(
            study=self.setup.study.name,
            benchmark=self.setup.benchmark.name,
            model=self.model.traits.name,
            source=self.source,
            side=self.side,
            tasks=tasks if self.rows is None else min(self.rows, tasks),
            seeds=self.setup.study.seeds,
            command=command,
        )

    @property
    def entries(self) -> list[Entry]:
        return list(self.setup.banks[self.source].entries())

    @property
    def live(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.live]

    async def table(self) -> Table:
        """The study's own passes, if they match the current bank, prompts and model.

        The test side must be open already, and its use is logged.
        """
        if self.side == "test":
            refuse_closed(self.space)
        tasks = [item.id for item in self.setup.splits.asked(self.side)]
        if self.rows is not None and self.rows < len(tasks):
            drawn = set(random.Random(self.seed).sample(tasks, self.rows))
            tasks = [task for task in tasks if task in drawn]
        ledger = Ledger(self.space.ledger)
        recording = self._recording(only(self.setup, self.side, self.source), tasks)
        if stale := await outdated(recording, ledger, self.model.traits.fingerprint):
            again = "record" if self.side == "fit" else "test"
            raise UsageError(
                f"passes of {', '.join(stale)} are missing, were recorded with another bank, prompt or "
                f"model, or would be graded differently: run heedful study {again}"
            )
        if self.side == "test":
            lock = read_lock(self.space.lock).lock
            log_event(self.space.events, f"asked the test side again: {self.name}", lock, now())
        clusters = study_clusters(self.space, self.setup)
        return read_table(ledger, self.side, tasks, self.setup.study.seeds, clusters)

    def _recording(
        self, sources: Sources, tasks: Collection[str], seeds: Sequence[int] | None = None
    ) -> Recording:
        wanted = set(tasks)
        whole = recording_of(self.setup, self.side)
        return replace(
            whole,
            items=[item for item in whole.items if item.id in wanted],
            sources={seed: sources(seed) for seed in seeds or self.setup.study.seeds},
        )

    async def vary(
        self,
        label: str,
        title: str,
        table: Table,
        entries: Sequence[Entry],
        *,
        recalls: Mapping[str, Sequence[Recall]] | None = None,
        again: bool = False,
        parent: Ledger | None = None,
    ) -> Variant:
        """Record the passes that other entries change on the rows of a table; recalls may be held fixed.

        `again` decodes the rows again even if their prompts are already recorded.
        """
        changed = with_bank(self.setup, self.source, entries)
        folder = self.space.folder / self.name / f"{self.source}-{label}"
        if (
            self.setup.study.sources[self.source].bank != "pool"
        ):  # pool entries contain questions of the benchmark
            write_text(folder / f"{self.source}.jsonl", write_entries(entries, "jsonl"))
        sources = only(changed, self.side, self.source)
        if recalls is not None:
            sources = frozen(sources, self.source, recalls, again=again)
        ledger, calls = await self.record(folder, title, sources, table.tasks, parent)
        read = read_table(ledger, self.side, list(dict.fromkeys(table.tasks)), self.setup.study.seeds)
        column = read.column(self.source)
        pairs = zip(column.passes, table.column(self.source).passes, strict=True)
        return Variant(
            table=replace(table, columns={**table.columns, self.source: column}),
            ledger=ledger,
            changed=sum(after.calls for after, before in pairs if after.prompt != before.prompt),
            calls=calls,
        )

    async def record(
        self,
        folder: Path,
        title: str,
        sources: Sources,
        tasks: Collection[str],
        parent: Ledger | None = None,
        seeds: Sequence[int] | None = None,
    ) -> tuple[Ledger, int]:
        """Record passes of these sources in a folder; returns the ledger and the number of model calls.

        Passes already recorded by the study, or by the variant given as `parent`, are not decoded again.
        """
        recording = self._recording(sources, tasks, seeds)
        with Ledger(folder / "ledger.jsonl", parent or Ledger(self.space.ledger)) as ledger:
            recorder = Recorder(recording, self.model, ledger, partial(self.tell, title))
            await recorder.run(slots_of(self.model, self.setup.study.model.slots))
        return ledger, recorder.calls


def policies_using(space: Workspace, source: str) -> dict[str, Policy]:
    """The source in every prompt, and the study's policy if it exists and uses the source."""
    policies = {"always": arms.always(source)}
    if space.fitted:
        policy = study_policy(space)
        if source in (policy.first, *policy.sources):
            policies["heedful"] = policy
    return policies


def refuse_closed(space: Workspace) -> None:
    """Refuse to use the test side before the locked study has opened it."""
    lock = read_lock(space.lock).lock if space.lock.exists() else ""
    events = [event.event for event in read_events(space.events) if event.lock == lock]
    if OPENED not in events:
        raise UsageError("the test side is not open yet: run heedful study test, or give --side fit")
