"""Persistent records: a pass in a ledger or a decision, and a decision with all its passes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from heedful.types import (
    NO_USAGE,
    Assignment,
    Fault,
    PassStatus,
    Policy,
    Route,
    Spec,
    Task,
    ToolCall,
    Trial,
    Usage,
    ValueTrace,
    Verdict,
)

FeedbackKind = Literal["grade", "answer", "preference"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRef:
    """A recalled entry without its text: id, version and score."""

    entry: str
    version: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalCost:
    """What a signal cost that asks questions of its own."""

    calls: int
    usage: Usage = NO_USAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRecord:
    """One pass as stored in ledgers and decisions; the prompt is stored as a digest."""

    source: str
    prompt: str
    """Digest of the prompt and the source's settings."""
    model: str
    """Fingerprint of the model."""
    status: PassStatus
    text: str = ""
    answer: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish: str = ""
    signals: Mapping[str, float] = field(default_factory=dict)
    guards: Mapping[str, str] = field(default_factory=dict)
    recalls: tuple[RecallRef, ...] = ()
    calls: int = 0
    usage: Usage = NO_USAGE
    seconds: float = 0.0
    error: str = ""
    signal_costs: Mapping[str, SignalCost] = field(default_factory=dict)
    """Per signal that made calls of its own, which `calls` and `usage` leave out; also if it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRef:
    """The model that made a decision."""

    name: str
    endpoint: str
    fingerprint: str
    sampling: Mapping[str, int | float | None] = field(default_factory=dict)
    """How a served request asked it to sample; None: left to the endpoint. Empty: greedily."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRecord:
    """A second pass and the verdict on it."""

    record: PassRecord
    confidence: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Everything that led to an answer; the texts of entries are looked up by id and version."""

    id: str
    at: float
    """Seconds since 1970."""
    task: Task
    model: ModelRef
    policy: Policy
    policy_id: str
    sources: Mapping[str, Spec]
    """The settings of the sources that the policy names."""
    first: PassRecord
    confidence: float | None
    """Of the first pass, by the policy's signal."""
    route: Route
    candidates: tuple[CandidateRecord, ...]
    verdict: Verdict | None
    chosen: int | None
    """Index of the candidate that became the answer; None: the first pass."""
    answer: str
    calls: int
    usage: Usage
    seconds: float
    overhead_seconds: float
    faults: tuple[Fault, ...]
    value: ValueTrace | None = None
    """Of a value policy: what it estimated."""
    trial: Trial | None = None
    """None if this answer took part in no trial."""
    assignment: Assignment | None = None
    """None outside rollouts."""

    @property
    def passes(self) -> tuple[PassRecord, ...]:
        """The first pass, then the second passes in the policy's order."""
        return (self.first, *(candidate.record for candidate in self.candidates))


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """What somebody said about a decision; the newest of each kind counts."""

    decision: str
    kind: FeedbackKind
    value: str
    """`right` or `wrong`; the right answer; or `first`, `memory` or `tie`."""
    metric: str = ""
    """Of an answer: the metric that graded the passes."""
    grades: tuple[bool, ...] = ()
    """Of an answer: whether each pass of the decision is right, in order."""
    at: float = 0.0
    """When it was stored, in seconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFilter:
    """Which decisions to read; None: whatever it is."""

    since: float | None = None
    """Seconds since 1970."""
    until: float | None = None
    route: Literal["keep", "consult"] | None = None
    verdict: Literal["accept", "rollback"] | None = None
    bank: str | None = None
    """A bank that the decision might have used."""
    entry: str | None = None
    """An entry that the decision recalled."""
    user: str | None = None
    """The value of `user` in the task's scope."""
    caller: str | None = None
    """The name of the key that asked `heedful serve`, as in the task's scope."""
    graded: bool | None = None
    """Whether somebody gave feedback."""
    coin: bool | None = None
    """Whether the coin of a trial decided about a memory answer that the policy accepted."""
    policy: str | None = None
    """The id of the policy."""
    search: str | None = None
    """Text in the question or the answer; upper and lower case of ASCII letters are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFacts:
    """The numbers of one decision without its texts, with its feedback."""

    id: str
    at: float
    route: Literal["keep", "consult"]
    verdict: Literal["accept", "rollback"] | None
    chosen: int | None
    confidence: float | None
    net_value: float | None
    """Of a value policy: expected gain minus cost of the first further pass."""
    seconds: float
    policy: str
    memory_first: bool
    """Whether the first pass used memory already."""
    memory_chosen: bool
    """Whether the answer is that of a second pass that used memory."""
    unchanged: bool
    """Whether the final answer is literally that of the first pass."""
    grade: Literal["right", "wrong"] | None = None
    preference: Literal["first", "memory", "tie"] | None = None
    grades: tuple[bool, ...] = ()
    """By a known answer: whether each pass is right, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Decisions with the same route and verdict: how many, and what they cost together."""

    route: Literal["keep", "consult"]
    verdict: Literal["accept", "rollback"] | None
    decisions: int
    calls: int
    tokens: int
    faulty: int
    """Decisions that survived at least one fault."""
