"""The values that flow through heedful; frozen, without behaviour beyond what they say of themselves."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]
Placement = Literal["auto", "after", "before", "system", "turns"]
Kind = Literal["fact", "rule", "exemplar", "hint"]
State = Literal["active", "quarantined", "retired", "protected"]
Side = Literal["fit", "test"]
PassStatus = Literal["decoded", "nothing", "failed"]
"""`nothing`: the source had nothing to add, no call was made; `failed`: the model gave no reply."""
JsonSchema = Mapping[str, Any]
Spec = Mapping[str, str | int | float | None]
"""A kind with its settings, enough to build the same thing again from a record."""

LEAST_SURE = -1000.0
"""Confidence of a pass that gave no answer; finite, so that it survives JSON and arithmetic."""


def digest_of(value: object) -> str:
    """The sha256 of a value's canonical JSON."""
    canonical = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function that the model may call."""

    name: str
    description: str = ""
    parameters: JsonSchema = field(default_factory=dict)
    """A JSON schema of its arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    name: str
    arguments: str = "{}"
    """JSON, as the model wrote it."""
    id: str = ""
    """Joins the call with its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    """Of an assistant's message."""
    tool_call_id: str = ""
    """Of a tool's message: the call that it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A question to answer, without its target: the controller cannot peek."""

    question: str
    """The last user turn; empty when the conversation before it ends with a tool's result."""
    id: str = ""
    """Evidence is counted by it; left empty, it is a digest of the content."""
    instructions: str = ""
    """The system message of every pass."""
    answer_pattern: str | None = None
    """A regular expression; the last match's first group is the answer. None: the whole text."""
    choices: tuple[str, ...] = ()
    """The allowed answers or actions; empty: anything."""
    schema: JsonSchema | None = None
    """A JSON schema that the answer must satisfy."""
    max_tokens: int = 256
    earlier: tuple[Message, ...] = ()
    """The conversation before the question, oldest first."""
    tools: tuple[Tool, ...] = ()
    """Functions that the model may call instead of answering."""
    query: str = ""
    """What banks are searched with; empty: the question, or else the last user turn before it."""

    def __post_init__(self) -> None:
        if not self.id:
            object.__setattr__(self, "id", _content_id(self))

    @property
    def search_text(self) -> str:
        """What banks are searched with."""
        turns = [message.content for message in self.earlier if message.role == "user"]
        return self.query or self.question or next(reversed(turns), "")

    def after(self, earlier: tuple[Message, ...]) -> "Task":
        """The task with more conversation before its own; a default id follows the content."""
        id = "" if self.id == _content_id(self) else self.id
        return replace(self, earlier=(*earlier, *self.earlier), id=id)


def _content_id(task: Task) -> str:
    said = [message_key(message) for message in task.earlier]
    return digest_of([task.question, task.instructions, list(task.choices), said])[:16]


def message_key(message: Message) -> list[object]:
    """What a message says, without the ids of its calls, which differ between equal conversations."""
    plain: list[object] = [message.role, message.content]
    calls = [[call.name, call.arguments] for call in message.tool_calls]
    return [*plain, calls] if calls else plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    label: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A benchmark's question with its target; only graders see one, never the controller."""

    id: str
    question: str
    answer: str
    choices: tuple[Choice, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """Everything that decides what a model is asked."""

    messages: tuple[Message, ...]
    max_tokens: int = 256
    temperature: float = 0.0
    seed: int | None = None
    schema: JsonSchema | None = None
    tools: tuple[Tool, ...] = ()

    @property
    def digest(self) -> str:
        asked: dict[str, object] = {
            "messages": [message_key(message) for message in self.messages],
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "seed": self.seed,
            "schema": None if self.schema is None else dict(self.schema),
        }
        if self.tools:
            asked["tools"] = [[t.name, t.description, dict(t.parameters)] for t in self.tools]
        return digest_of(asked)


@dataclass(frozen=True, slots=True)
class Token:
    """A generated token with its log-probability and those of the likeliest alternatives."""

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()
    """The likeliest tokens at this place with their log-probs, highest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
        )

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decode:
    """One reply of a model to one prompt: a text, or calls of tools."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    answer: str = ""
    span: tuple[int, int] | None = None
    """Where the answer stands in the text; None when it could not be found."""
    tokens: tuple[Token, ...] = ()
    """Generated tokens; empty when the endpoint gives no log-probs."""
    usage: Usage = NO_USAGE
    seconds: float = 0.0
    finish: str = "stop"
    model: str = ""
    """Who answered: the endpoint and model, for error messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What a model is and what it can give."""

    name: str
    endpoint: str = ""
    logprobs: bool = True
    top_logprobs: int = 0
    """How many alternatives come with each token."""
    fingerprint: str = ""
    """A digest of the weights or of the endpoint and model name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One version of one memory entry; an edit is a new version with a new digest."""

    id: str
    kind: Kind
    text: str
    """What the entry says; of an exemplar, the problem."""
    response: str = ""
    """Of an exemplar: the worked answer."""
    tags: tuple[str, ...] = ()
    source: str = ""
    """Where it came from."""
    state: State = "active"
    reason: str = ""
    """Why it is in this state."""

    @property
    def live(self) -> bool:
        """Whether it may be recalled."""
        return self.state in ("active", "protected")

    @property
    def digest(self) -> str:
        """The version: content only, so that retiring an entry does not change it."""
        return digest_of([self.kind, self.text, self.response, list(self.tags)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A change of an entry's state that is asked for."""

    entry: str
    state: State
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """A change of an entry's state that happened."""

    at: float
    """Seconds since 1970."""
    state: State
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """An entry found for a query, with its score (higher is nearer)."""

    entry: Entry
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What an entry did to one task: utility of the candidate minus utility of the baseline."""

    entry: str
    version: str
    task: str
    utility: float
    """-1 hurt, 0 no difference, 1 help."""
    decision: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many second passes a task or an episode may buy."""

    passes: int | None = None
    """At most this many second passes in a task, or in a whole episode."""
    cooldown: int = 0
    """Steps of an episode that must pass after a consulted step before the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUse:
    """What an episode has used of its budget so far."""

    passes: int = 0
    steps_since: int | None = None
    """Steps since memory was last consulted; None: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrator:
    """A small logistic model of being right, fitted on the fit side."""

    features: tuple[str, ...]
    """Names of signals, `agreement` with the first pass, or `recall`, the best recall score."""
    weights: tuple[float, ...]
    bias: float
    means: tuple[float, ...]
    scales: tuple[float, ...]
    floors: tuple[float, ...] = ()
    """The least that each feature counts as, so that a pass without an answer is no outlier; empty: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrators:
    """The calibrators of a policy: one for its first pass, and one for each source."""

    first: Calibrator
    sources: Mapping[str, Calibrator] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A point in the policy space; every arm of the paper is one (see `heedful.arms`)."""

    first: str = "none"
    """The source that decodes first; `none` is the paper's memory-free first pass."""
    signal: str = "mean"
    threshold: float = float("-inf")
    """Consult iff confidence < threshold (eq. 5); -inf never, inf always."""
    sources: tuple[str, ...] = ()
    """Sources of the second pass, in order."""
    combine: Literal["cascade", "dual", "agree"] = "cascade"
    """cascade: the first accepted candidate wins; dual: all are decoded, the surest accepted wins; agree:
    an accepted candidate wins when another says the same against the first pass."""
    margins: Mapping[str, float] | None = None
    """Per source: accept iff candidate ≥ baseline + margin (eq. 7); None: no margin test."""
    guards: tuple[str, ...] = ("format", "valid")
    budget: Budget = Budget()
    calibrators: Calibrators | None = None
    """For the signal `calibrated`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    choice: Literal["keep", "consult"]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    choice: Literal["accept", "rollback"]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A failure that was survived: where, and what was said."""

    stage: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A pass that is ready to be decoded: its first prompt and what was recalled for it."""

    prompt: Prompt
    recalls: tuple[Recall, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One pass: what a source asked, what the model replied, and what was measured of it."""

    source: str
    prompt: Prompt
    decode: Decode
    recalls: tuple[Recall, ...] = ()
    status: PassStatus = "decoded"
    error: str = ""
    """Why the pass failed."""
    signals: Mapping[str, float] = field(default_factory=dict)
    """Confidence by each signal; one that is not available is absent."""
    guards: Mapping[str, str] = field(default_factory=dict)
    """Reason by each guard that looked at it; empty: it passed."""
    calls: int = 1
    usage: Usage = NO_USAGE
    """Tokens over all calls of this pass."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A second pass with the verdict on it; one that was not decoded is always rolled back."""

    attempt: Attempt
    confidence: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The answer to a task and everything that led to it."""

    task: Task
    policy: Policy
    baseline: Attempt
    """The first pass."""
    confidence: float | None
    """Of the first pass, by the policy's signal; None when it is not available."""
    route: Route
    candidates: tuple[Candidate, ...] = ()
    verdict: Verdict | None = None
    """None when memory was not consulted."""
    chosen: int | None = None
    """Which candidate became the answer; None: the baseline stands."""
    calls: int = 1
    """Model calls that were made for this answer, those of its signals included."""
    usage: Usage = NO_USAGE
    """Tokens over all these calls."""
    faults: tuple[Fault, ...] = ()
    seconds: float = 0.0
    overhead_seconds: float = 0.0
    """Time in which no call of the model was under way."""
    decision: str = ""
    """The id of the decision record."""
    model: Traits = Traits(name="")
    sources: Mapping[str, Spec] = field(default_factory=dict)
    """The settings of the sources that the policy names."""

    @property
    def decode(self) -> Decode:
        """The pass that became the answer."""
        return self.baseline.decode if self.chosen is None else self.candidates[self.chosen].attempt.decode

    @property
    def answer(self) -> str:
        return self.decode.answer
