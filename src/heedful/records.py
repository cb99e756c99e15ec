"""Persistent records: a pass in a ledger or a decision, and a decision with all its passes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from heedful.types import (
    NO_USAGE,
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
