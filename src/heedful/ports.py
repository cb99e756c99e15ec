"""What heedful asks of the things that plug into it; `heedful.testing` holds a conformance suite for each."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from heedful.types import (
    Attempt,
    Decode,
    Entry,
    Evidence,
    Item,
    Outcome,
    Plan,
    Prompt,
    Recall,
    Side,
    Spec,
    State,
    Task,
    Traits,
)


@runtime_checkable
class Model(Protocol):
    """Answers prompts. Raises `ModelError` when it cannot."""

    @property
    def traits(self) -> Traits: ...

    async def decode(self, prompt: Prompt) -> Decode: ...


@runtime_checkable
class Bank(Protocol):
    """Finds the entries that belong to a query; never a retired one."""

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
    """Keeps entries append-only; what it acknowledged survives a crash."""

    def put(self, bank: str, entries: Sequence[Entry]) -> int:
        """Add versions, all or none; return how many were new."""
        ...

    def entries(self, bank: str) -> Sequence[Entry]: ...

    def mark(self, bank: str, entry: str, state: State, reason: str) -> Entry: ...

    def mark_all(self, bank: str, marks: Sequence[tuple[str, State, str]]) -> Sequence[Entry]:
        """Change several entries' states, all or none."""
        ...

    def observe(self, bank: str, evidence: Sequence[Evidence]) -> None: ...

    def evidence(self, bank: str) -> Sequence[Evidence]: ...


@runtime_checkable
class Source(Protocol):
    """Makes one pass over a task: with memory, or without as a control."""

    @property
    def spec(self) -> Spec: ...

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
    """Keeps decision records; `record` returns only when the record is durable."""

    def record(self, outcome: Outcome) -> None: ...


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
