"""Compare whole memories in the prompt of the same solver, and no memory.

Nothing is routed, recalled or rolled back: this measures what each memory is worth to one solver, as
Training-Free GRPO uses its experiences.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from heedful.errors import UsageError
from heedful.memory.bank import MemoryBank
from heedful.ports import Benchmark, Model, Source
from heedful.protocol.ledger import Ledger
from heedful.protocol.record import OnProgress, Recorder, Recording
from heedful.protocol.table import read_table
from heedful.sources import MemorySource, RetrySource
from heedful.stats.intervals import Interval, share_of
from heedful.stats.mcnemar import mcnemar
from heedful.stats.paired import PairedCounts, count_pairs
from heedful.types import Attempt, Entry, Item, Plan, Recall, Side, Spec, Task

HEADING = "Experiences from earlier problems; read them first:"


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeMemory:
    """A source that puts all entries into the prompt, in order."""

    memory_free_first: ClassVar[bool] = False
    inner: MemorySource

    @property
    def spec(self) -> Spec:
        return {**self.inner.spec, "recall": "all"}

    async def prepare(self, task: Task, baseline: Attempt | None) -> Plan | None:
        live = [entry for entry in self.inner.bank.entries() if entry.live]
        every = [Recall(entry=entry, score=1.0) for entry in live]
        return self.inner.plan(every, task)

    async def attempt(self, plan: Plan, task: Task, model: Model, baseline: Attempt | None) -> Attempt:
        return await self.inner.attempt(plan, task, model, baseline)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizedBenchmark:
    """A benchmark with another limit on answer tokens."""

    inner: Benchmark
    max_tokens: int

    @property
    def name(self) -> str:
        return self.inner.name

    def load(self, data: Path, side: Side) -> Sequence[Item]:
        return self.inner.load(data, side)

    def task(self, item: Item) -> Task:
        return replace(self.inner.task(item), max_tokens=self.max_tokens)

    def grade(self, answer: str, item: Item) -> bool:
        return self.inner.grade(answer, item)

    def exemplar(self, item: Item) -> Entry | None:
        return self.inner.exemplar(item)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonResult:
    """One memory on the same problems."""

    memory: str
    entries: int
    right: Interval
    paired: PairedCounts
    """Compared with no memory."""
    p: float
    tokens: float
    """Per problem, prompt and answer."""


async def compare(
    benchmark: Benchmark,
    items: Sequence[Item],
    memories: Mapping[str, Sequence[Entry]],
    model: Model,
    ledger_file: Path,
    slots: int,
    tell: OnProgress,
) -> list[ComparisonResult]:
    """Every memory on every problem; passes in the ledger are not decoded again."""
    if not items:
        raise UsageError(f"{benchmark.name} has no problems to ask")
    sources: dict[str, Source] = {"none": RetrySource()}
    for name, entries in memories.items():
        bank = MemoryBank(name, entries, method="bm25")
        inner = MemorySource(bank=bank, placement="system", limit=len(entries), heading=HEADING)
        sources[name] = WholeMemory(inner=inner)
    recording = Recording(side="test", items=items, sources={0: sources}, benchmark=benchmark)
    with Ledger(ledger_file) as ledger:
        await Recorder(recording, model, ledger, tell).run(slots)
    table = read_table(ledger, "test", [item.id for item in items], [0])
    base = table.column("none").right.tolist()
    results = []
    for name in sources:
        column = table.column(name)
        counts = count_pairs(base, column.right.tolist())
        results.append(
            ComparisonResult(
                memory=name,
                entries=len(memories.get(name, ())),
                right=share_of(column.right, table.tasks),
                paired=counts,
                p=mcnemar(counts.helps, counts.hurts),
                tokens=float(column.tokens.mean()),
            )
        )
    return results
