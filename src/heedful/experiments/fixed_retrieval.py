"""Fixed recalls: the same entries in the prompt, whatever their current content."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from heedful.errors import UsageError
from heedful.ports import Model, Source
from heedful.protocol.table import Table
from heedful.sources.memory import MemorySource
from heedful.types import Attempt, Entry, Plan, Recall, Spec, Task

Sources = Callable[[int], Mapping[str, Source]]
"""The sources of a variant by seed, `none` first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedRetrieval:
    """A memory source with given recalls, whatever their current content."""

    memory_free_first: ClassVar[bool] = False
    inner: MemorySource
    found: Mapping[str, Sequence[Recall]]
    """Recalls by task."""
    again: bool = False
    """Decode the same prompts again: passes recorded without this flag do not count."""

    @property
    def spec(self) -> Spec:
        return {**self.inner.spec, "again": True} if self.again else self.inner.spec

    async def prepare(self, task: Task, baseline: Attempt | None) -> Plan | None:
        recalls = self.found[task.id]
        return self.inner.plan(recalls, task) if recalls else None

    async def attempt(self, plan: Plan, task: Task, model: Model, baseline: Attempt | None) -> Attempt:
        return await self.inner.attempt(plan, task, model, baseline)


def frozen(
    sources: Sources, source: str, found: Mapping[str, Sequence[Recall]], *, again: bool = False
) -> Sources:
    """The sources with recalls given by task instead of searched."""

    def named(seed: int) -> Mapping[str, Source]:
        every = dict(sources(seed))
        inner = every[source]
        assert isinstance(inner, MemorySource), "a bank's source is a memory source"
        return {**every, source: FixedRetrieval(inner=inner, found=found, again=again)}

    return named


def original_recalls(table: Table, source: str, entries: Sequence[Entry]) -> Mapping[str, Sequence[Recall]]:
    """By task, the entries that the study recalled, with their current content."""
    by_id = {entry.id: entry for entry in entries}
    lost = {recall.entry for row in table.column(source).passes for recall in row.recalls} - set(by_id)
    if lost:
        raise UsageError(
            f"the study recalled {', '.join(sorted(lost)[:3])} from {source}, which its bank no longer has: "
            "run heedful study record"
        )
    return {
        task: tuple(Recall(entry=by_id[recall.entry], score=recall.score) for recall in row.recalls)
        for task, row in zip(table.tasks, table.column(source).passes, strict=True)
    }
