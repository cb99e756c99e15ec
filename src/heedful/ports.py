"""The interfaces that extensions implement; `heedful.testing` has conformance suites for them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, runtime_checkable

from heedful.records import Decision, DecisionFacts, DecisionFilter, Feedback, Traffic
from heedful.types import (
    Attempt,
    Audience,
    Decode,
    Entry,
    EpisodeSide,
    Evidence,
    Item,
    Mark,
    Observation,
    Outcome,
    Plan,
    Prompt,
    Recall,
    Side,
    Spec,
    StateChange,
    Task,
    Traits,
    Trial,
)


@runtime_checkable
class Model(Protocol):
    """Answers prompts. Raises `ModelError` when it cannot."""

    @property
    def traits(self) -> Traits: ...

    async def decode(self, prompt: Prompt) -> Decode: ...

    async def aclose(self) -> None:
        """Release connections and engines; a closed model can be used again."""
        ...


@runtime_checkable
class Bank(Protocol):
    """Recalls entries for a query: never retired or quarantined ones, and none of another scope or time."""

    @property
    def name(self) -> str: ...

    @property
    def digest(self) -> str:
        """Changes whenever an entry's content or state changes, and only then."""
        ...

    @property
    def spec(self) -> Spec:
        """Name, digest and recall settings."""
        ...

    def entries(self) -> Sequence[Entry]: ...

    async def recall(self, query: str, *, limit: int, audience: Audience | None = None) -> Sequence[Recall]:
        """The best `limit` entries that the audience sees, best first, ties by id; None: no scope, now."""
        ...


@runtime_checkable
class Store(Protocol):
    """Stores banks append-only, with their evidence; acknowledged writes survive a crash."""

    async def put(self, bank: str, entries: Sequence[Entry]) -> int:
        """Add versions, all or none; return the number of new ones."""
        ...

    async def banks(self) -> Mapping[str, int]:
        """The number of entries of every bank."""
        ...

    async def revision(self, bank: str) -> int:
        """A number that grows whenever an entry's content or state changes."""
        ...

    async def entries(self, bank: str) -> Sequence[Entry]:
        """The newest version of every entry, in the order in which entries were added."""
        ...

    async def entry(self, bank: str, entry: str) -> Entry:
        """One entry by its id or a unique id prefix."""
        ...

    async def version(self, bank: str, entry: str, digest: str) -> Entry:
        """A past or present version of an entry, by its digest."""
        ...

    async def versions(self, bank: str, entry: str) -> Sequence[Entry]:
        """Every version of an entry, oldest first."""
        ...

    async def history(self, bank: str, entry: str) -> Sequence[StateChange]:
        """Every state change of an entry, oldest first."""
        ...

    async def audit(self, bank: str) -> Sequence[StateChange]:
        """Every state change of a bank, oldest first, with who made it, why and on which evidence."""
        ...

    async def mark(self, bank: str, marks: Sequence[Mark]) -> Sequence[Entry]:
        """Change states and log them, all or none; a protected entry must be restored before it may go."""
        ...

    async def observe(self, bank: str, evidence: Sequence[Evidence]) -> None: ...

    async def evidence(self, bank: str) -> Sequence[Evidence]: ...

    async def aclose(self) -> None: ...


@runtime_checkable
class Source(Protocol):
    """Makes one pass over a task: with memory, or without as a control."""

    @property
    def spec(self) -> Spec:
        """The settings that determine its passes, for records."""
        ...

    @property
    def memory_free_first(self) -> bool:
        """Whether it needs a memory-free first pass to work on, as a critic does."""
        ...

    async def prepare(self, task: Task, baseline: Attempt | None) -> Plan | None:
        """Prepare the pass without calling the model; None if there is nothing to add (nothing recalled)."""
        ...

    async def attempt(self, plan: Plan, task: Task, model: Model, baseline: Attempt | None) -> Attempt:
        """Decode the prepared pass."""
        ...


@runtime_checkable
class Guard(Protocol):
    """Refuses a candidate with a reason code, or lets it pass with None."""

    def refuses(self, task: Task, baseline: Decode, candidate: Decode) -> str | None: ...


@runtime_checkable
class Journal(Protocol):
    """Stores decisions; `record` and `announce` return only when their content is durable."""

    async def announce(self, decision: str, trial: Trial) -> None:
        """Store the coin of a trial before anything is decoded; the decision with this id may follow."""
        ...

    async def record(self, decision: Decision) -> None: ...

    async def find(self, decision: str) -> Decision:
        """A decision by its id, a unique id prefix, or `last`."""
        ...

    async def recent(self, limit: int) -> Sequence[Decision]:
        """The newest decisions, newest first."""
        ...

    async def purge(self, before: float) -> int:
        """Delete the decisions made before a time (seconds since 1970); return how many were deleted."""
        ...

    async def aclose(self) -> None: ...


@runtime_checkable
class DecisionReader(Protocol):
    """Reads recorded decisions by filters; fast enough for a page with 100,000 of them."""

    async def find(self, decision: str) -> Decision:
        """A decision by its id, a unique id prefix, or `last`."""
        ...

    async def select(
        self, wanted: DecisionFilter, limit: int | None = None, skip: int = 0
    ) -> Sequence[Decision]:
        """The decisions that pass a filter, newest first; `skip` leaves out the newest of them."""
        ...

    async def facts(self, wanted: DecisionFilter, limit: int) -> Sequence[DecisionFacts]:
        """The numbers and the feedback of the newest decisions that pass a filter, newest first."""
        ...

    async def traffic(self, wanted: DecisionFilter) -> Sequence[Traffic]:
        """All decisions that pass a filter, counted by route and verdict."""
        ...

    async def recalls(self, bank: str, caller: str | None = None) -> Mapping[str, int]:
        """By entry of a bank: the number of decisions that recalled it, of one caller or of all; an entry
        never recalled is absent."""
        ...


@runtime_checkable
class FeedbackReader(Protocol):
    """Reads the feedback on decisions."""

    async def of(self, decisions: Sequence[Decision]) -> Mapping[str, Sequence[Feedback]]:
        """The feedback on each of these decisions, by decision."""
        ...


@runtime_checkable
class Observer(Protocol):
    """Watches decisions and their passes, for traces and metrics; the controller survives its failures.

    Each method is entered when the work begins and left when it ends. It gives a function that is called with
    the result, if there is one.
    """

    def deciding(
        self, decision: str, task: Task, model: Traits
    ) -> AbstractContextManager[Callable[[Outcome], None]]:
        """Watch a decision; its passes begin and end inside, also concurrently."""
        ...

    def passing(
        self, decision: str, source: str, model: Traits
    ) -> AbstractContextManager[Callable[[Attempt], None]]:
        """Watch a pass; the first pass of a decision ends before the second passes begin."""
        ...


@runtime_checkable
class Benchmark(Protocol):
    """Provides questions and grades answers."""

    @property
    def name(self) -> str: ...

    def load(self, data: Path, side: Side) -> Sequence[Item]:
        """The rows of a side, always in the same order."""
        ...

    def task(self, item: Item) -> Task: ...

    def grade(self, answer: str, item: Item) -> bool: ...

    def exemplar(self, item: Item) -> Entry | None:
        """The item as a worked example; None if it cannot be one."""
        ...


@runtime_checkable
class AnswerJudge(Protocol):
    """A benchmark that asks a model before it can grade an answer."""

    async def judge(self, answer: str, item: Item) -> None:
        """Have an answer graded, so that `grade` knows the verdict."""
        ...


@runtime_checkable
class Environment(Protocol):
    """A world in which an agent acts; the same seed and the same actions give the same observations.

    It is used by one episode at a time. Raises `WorldError` when it fails.
    """

    @property
    def spec(self) -> Spec:
        """The settings that determine its episodes, for records."""
        ...

    def seeds(self, side: EpisodeSide) -> Sequence[int]:
        """The episodes of a side, always in the same order; sides do not share an episode."""
        ...

    def reset(self, seed: int) -> Observation:
        """Start the episode with this number."""
        ...

    def step(self, action: str) -> Observation:
        """Act; an invalid action changes nothing, and the observation says so."""
        ...

    def close(self) -> None:
        """Release processes and files, also while another thread waits for a step; a closed environment can
        be reset again."""
        ...


@runtime_checkable
class Teacher(Protocol):
    """An environment that knows how its episodes are solved; memory is built from it."""

    def gold(self, seed: int) -> Sequence[str]:
        """Actions that solve an episode."""
        ...


@runtime_checkable
class Contract(Protocol):
    """An environment with rules that memory must not break; it may use the goal, never the solution."""

    def breaks(self, action: str) -> str | None:
        """A reason code if the action breaks a rule in the current state."""
        ...
