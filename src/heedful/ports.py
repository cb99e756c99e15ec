"""What heedful asks of the things that plug into it; `heedful.testing` holds a conformance suite for each."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from heedful.records import Decision
from heedful.types import (
    Attempt,
    Decode,
    Entry,
    Evidence,
    Item,
    Mark,
    Plan,
    Prompt,
    Recall,
    Side,
    Spec,
    StateChange,
    Task,
    Traits,
)


@runtime_checkable
class Model(Protocol):
    """Answers prompts. Raises `ModelError` when it cannot."""

    @property
    def traits(self) -> Traits: ...

    async def decode(self, prompt: Prompt) -> Decode: ...

    async def aclose(self) -> None:
        """Let go of connections and engines; a model that is closed may be used again."""
        ...


@runtime_checkable
class Bank(Protocol):
    """Finds the entries that belong to a query; never one that is retired or quarantined."""

    @property
    def name(self) -> str: ...

    @property
    def digest(self) -> str:
        """Changes whenever an entry's content or state changes, and only then."""
        ...

    @property
    def spec(self) -> Spec:
        """Name, digest and how it recalls."""
        ...

    def entries(self) -> Sequence[Entry]: ...

    async def recall(self, query: str, *, limit: int) -> Sequence[Recall]:
        """The best `limit` entries, best first, ties by id."""
        ...


@runtime_checkable
class Store(Protocol):
    """Keeps banks append-only, with their evidence; what it acknowledged survives a crash."""

    async def put(self, bank: str, entries: Sequence[Entry]) -> int:
        """Add versions, all or none; return how many were new."""
        ...

    async def banks(self) -> Mapping[str, int]:
        """Every bank with how many entries it has."""
        ...

    async def revision(self, bank: str) -> int:
        """A number that grows whenever an entry's content or state changes."""
        ...

    async def entries(self, bank: str) -> Sequence[Entry]:
        """The newest version of every entry in the order in which they came."""
        ...

    async def entry(self, bank: str, entry: str) -> Entry:
        """One entry by id, or by a beginning of it that no other shares."""
        ...

    async def version(self, bank: str, entry: str, digest: str) -> Entry:
        """A past or present version of an entry, by its digest."""
        ...

    async def versions(self, bank: str, entry: str) -> Sequence[Entry]:
        """Every version of an entry, oldest first."""
        ...

    async def history(self, bank: str, entry: str) -> Sequence[StateChange]:
        """Every change of an entry's state, oldest first."""
        ...

    async def mark(self, bank: str, marks: Sequence[Mark]) -> Sequence[Entry]:
        """Change states, all or none; a protected entry must be restored before it can be set aside."""
        ...

    async def observe(self, bank: str, evidence: Sequence[Evidence]) -> None: ...

    async def evidence(self, bank: str) -> Sequence[Evidence]: ...

    async def aclose(self) -> None: ...


@runtime_checkable
class Source(Protocol):
    """Makes one pass over a task: with memory, or without as a control."""

    @property
    def spec(self) -> Spec:
        """What decides its passes, for records; nothing reads its meaning from it."""
        ...

    @property
    def memory_free_first(self) -> bool:
        """Whether it works on the answer of a first pass without memory, as a critic does."""
        ...

    async def prepare(self, task: Task, baseline: Attempt | None) -> Plan | None:
        """Get the pass ready without the model; None when there is nothing to add (nothing recalled)."""
        ...

    async def attempt(self, plan: Plan, task: Task, model: Model, baseline: Attempt | None) -> Attempt:
        """Decode what was prepared."""
        ...


@runtime_checkable
class Guard(Protocol):
    """Refuses a candidate with a reason code, or lets it pass with None."""

    def refuses(self, task: Task, baseline: Decode, candidate: Decode) -> str | None: ...


@runtime_checkable
class Journal(Protocol):
    """Keeps decisions; `record` returns only when the decision is durable."""

    async def record(self, decision: Decision) -> None: ...

    async def find(self, decision: str) -> Decision:
        """A decision by its id, by a beginning of it, or `last`."""
        ...

    async def recent(self, limit: int) -> Sequence[Decision]:
        """The newest decisions, newest first."""
        ...

    async def purge(self, before: float) -> int:
        """Delete the decisions made before a time, in seconds since 1970; return how many."""
        ...

    async def aclose(self) -> None: ...


@runtime_checkable
class Benchmark(Protocol):
    """Says what is asked and when an answer is right."""

    @property
    def name(self) -> str: ...

    def load(self, data: Path, side: Side) -> Sequence[Item]:
        """The rows of a side, always in the same order."""
        ...

    def task(self, item: Item) -> Task: ...

    def grade(self, answer: str, item: Item) -> bool: ...

    def exemplar(self, item: Item) -> Entry | None:
        """The item as a worked example; None where it cannot be one."""
        ...
