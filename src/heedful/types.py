"""The frozen values that flow through heedful."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import msgspec

from heedful.errors import PolicyError
from heedful.limits import is_number, refuse_count

Role = Literal["system", "user", "assistant", "tool"]
Placement = Literal["auto", "after", "advice", "before", "system", "turns"]
HintPlacement = Literal["after", "advice"]
Kind = Literal["fact", "rule", "exemplar", "hint"]
State = Literal["active", "quarantined", "retired", "protected"]
Side = Literal["fit", "test"]
CostUnit = Literal["calls", "tokens"]
"""What λ prices: model calls, or thousands of tokens."""
EpisodeSide = Literal["pool", "fit", "test"]
"""The episodes of an environment: `pool` for memory, `fit` to choose a policy, `test` to measure it."""
RolloutMode = Literal["shadow", "canary"]
ServedArm = Literal["policy", "first"]
"""Whose answer is served: the one that the policy chooses, or always the first one."""
PassStatus = Literal["decoded", "nothing", "failed"]
"""`nothing`: the source had nothing to add, so no call was made; `failed`: the pass has no reply."""
JsonSchema = Mapping[str, Any]
CALLER = "caller"
"""The key in a task's scope that holds the name of a server's caller; no request can set it."""
Spec = Mapping[str, str | int | float | None]
"""A kind with its settings, enough to rebuild the same object from a record."""

OWN_ROWS = "own rows"
DEFAULT_RECALL = "dense"
DEFAULT_THRESHOLD = 0.6
"""The paper's recall: MiniLM with this minimum similarity; the same in Python, commands and studies."""
LEAST_SURE = -1000.0
"""Confidence of a pass without an answer; finite, so that it works in JSON and arithmetic."""


def digest_of(value: object) -> str:
    """The sha256 of a value's canonical JSON."""
    return hashlib.sha256(_CANONICAL.encode(value).encode()).hexdigest()


_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def plain_digest_of(value: object) -> str:
    """`digest_of` in a fifth of its time, for values all of whose parts are `plainly_written`."""
    return hashlib.sha256(_PLAIN.encode(value)).hexdigest()


_PLAIN = msgspec.json.Encoder(order="sorted")


def plainly_written(part: object) -> bool:
    """Whether all JSON encoders write it in the same way; they differ in very small and large floats."""
    if isinstance(part, float):
        return part == 0 or 1e-4 <= abs(part) < 1e16
    return part is None or isinstance(part, str | int)


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
    """Links the call to its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    """Of an assistant's message."""
    tool_call_id: str = ""
    """Of a tool's message: the call it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A question to answer; it does not contain the target, so the controller cannot see it."""

    question: str
    """The last user turn; empty when the conversation before it ends with a tool's result."""
    id: str = ""
    """Evidence is counted per id; if empty, it becomes a digest of the content."""
    instructions: str = ""
    """The system message of every pass."""
    answer_pattern: str | None = None
    """A regular expression; in its last match, the group `answer`, else the first group, else the whole match
    is the answer. None: the whole text."""
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
    """The text to search banks with; empty: the question, or else the last user turn before it."""
    scope: Mapping[str, str] = field(default_factory=dict)
    """Who asks, as any keys and values (user, team, app); entries of another scope are not recalled."""
    at: float | None = None
    """When the question is asked, in seconds since 1970; None: now. Entries may be valid for a time only."""

    def __post_init__(self) -> None:
        if not self.id:
            object.__setattr__(self, "id", _content_id(self))

    @property
    def search_text(self) -> str:
        """The text to search banks with."""
        turns = [message.content for message in self.earlier if message.role == "user"]
        return self.query or self.question or next(reversed(turns), "")

    def after(self, earlier: tuple[Message, ...]) -> "Task":
        """The task with a longer conversation before the question; a default id is recomputed."""
        id = "" if self.id == _content_id(self) else self.id
        return replace(self, earlier=(*earlier, *self.earlier), id=id)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTemplate:
    """What the tasks of a study share; a question makes it a task."""

    instructions: str = ""
    answer_pattern: str | None = None
    schema: JsonSchema | None = None
    max_tokens: int = 256

    def task(
        self,
        question: str,
        *,
        id: str = "",
        choices: tuple[str, ...] = (),
        scope: Mapping[str, str] | None = None,
    ) -> Task:
        """The task that asks this question."""
        return Task(
            question=question,
            id=id,
            choices=choices,
            scope=scope or {},
            instructions=self.instructions,
            answer_pattern=self.answer_pattern,
            schema=self.schema,
            max_tokens=self.max_tokens,
        )


def _content_id(task: Task) -> str:
    earlier = [message_key(message) for message in task.earlier]
    scope = [dict(task.scope)] if task.scope else []
    return plain_digest_of([task.question, task.instructions, list(task.choices), earlier, *scope])[:16]


def message_key(message: Message) -> list[object]:
    """The content of a message without its call ids, which differ between equal conversations."""
    plain: list[object] = [message.role, message.content]
    calls = [[call.name, call.arguments] for call in message.tool_calls]
    return [*plain, calls] if calls else plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    label: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A benchmark question with its target; graders see it, the controller never does."""

    id: str
    question: str
    answer: str
    also: tuple[str, ...] = ()
    """Further right answers."""
    choices: tuple[Choice, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def targets(self) -> tuple[str, ...]:
        """Every right answer."""
        return (self.answer, *self.also)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A complete request to a model."""

    messages: tuple[Message, ...]
    max_tokens: int = 256
    temperature: float = 0.0
    seed: int | None = None
    schema: JsonSchema | None = None
    tools: tuple[Tool, ...] = ()

    @property
    def digest(self) -> str:
        fields: dict[str, object] = {
            "messages": [message_key(message) for message in self.messages],
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "seed": self.seed,
            "schema": None if self.schema is None else dict(self.schema),
        }
        if self.tools:
            fields["tools"] = [[t.name, t.description, dict(t.parameters)] for t in self.tools]
        plain = self.schema is None and not self.tools and plainly_written(self.temperature)
        return plain_digest_of(fields) if plain else digest_of(fields)


@dataclass(frozen=True, slots=True)
class Token:
    """A generated token with its log-probability and the most likely alternatives."""

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()
    """The most likely tokens at this position with their log-probs, highest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        if self is NO_USAGE:
            return other
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
    """A model's reply to one prompt: text or tool calls."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    answer: str = ""
    span: tuple[int, int] | None = None
    """The answer's position in the text; None if no answer was found."""
    tokens: tuple[Token, ...] = ()
    """Generated tokens; empty if the endpoint returns no log-probs."""
    usage: Usage = NO_USAGE
    seconds: float = 0.0
    finish: str = "stop"
    model: str = ""
    """The endpoint and model that answered, for error messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """A model's identity and capabilities."""

    name: str
    endpoint: str = ""
    logprobs: bool = True
    top_logprobs: int = 0
    """Number of alternatives per token."""
    fingerprint: str = ""
    """A digest of the weights, or of the endpoint and model name."""
    sampling: Mapping[str, int | float | None] = field(default_factory=dict)
    """Settings that a client's request gives every pass, such as its temperature; None: left to the endpoint.
    Empty: each prompt has its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One version of one memory entry; an edit is a new version with a new digest."""

    id: str
    kind: Kind
    text: str
    """The entry's text; of an exemplar, the problem."""
    response: str = ""
    """Of an exemplar: the worked answer."""
    tags: tuple[str, ...] = ()
    source: str = ""
    """Where it comes from."""
    state: State = "active"
    reason: str = ""
    """Why it is in this state."""
    scope: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Whom it is for: a task sees it only if the task's scope has all these values; empty: everyone."""
    valid_from: float | None = None
    """Seconds since 1970; it is not recalled before."""
    valid_until: float | None = None
    """Seconds since 1970; it is not recalled from then on."""

    @property
    def live(self) -> bool:
        """Whether it may be recalled."""
        return self.state in ("active", "protected")

    @property
    def limited(self) -> bool:
        """Whether some tasks do not see it."""
        return bool(self.scope) or self.valid_from is not None or self.valid_until is not None

    @property
    def digest(self) -> str:
        """The version: a digest of the content only, so that retiring an entry does not change it."""
        content: list[object] = [self.kind, self.text, self.response, list(self.tags)]
        limits = [dict(self.scope), self.valid_from, self.valid_until] if self.limited else []
        return digest_of([*content, *limits])


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """Who asks, and when."""

    scope: Mapping[str, str] = field(default_factory=dict)
    at: float
    """Seconds since 1970."""

    def sees(self, entry: Entry) -> bool:
        """Whether the entry is for this scope and valid at this time."""
        started = entry.valid_from is None or entry.valid_from <= self.at
        ended = entry.valid_until is not None and entry.valid_until <= self.at
        return started and not ended and all(self.scope.get(k) == v for k, v in entry.scope.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """The evidence on which a review changed the state of an entry."""

    rule: str
    tasks: int
    helps: int
    hurts: int
    bound: float | None = None
    """Upper bound of the mean utility; None by the sign test."""
    p_value: float | None = None
    """Of the sign test; None by a bound."""
    group: str = ""
    """The group that was judged; empty: the entry itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A requested state change of an entry."""

    entry: str
    state: State
    reason: str = ""
    by: str = ""
    """Who wants it: a person, or the part of heedful that acts by itself."""
    grounds: Grounds | None = None
    """The evidence of a review; None if somebody simply decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """A completed state change of an entry, as the audit log holds it."""

    at: float
    """Seconds since 1970."""
    entry: str
    before: State
    state: State
    reason: str
    by: str = ""
    grounds: Grounds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """An entry recalled for a query, with its score (higher is closer)."""

    entry: Entry
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The effect of an entry on one task: utility of the candidate minus utility of the baseline."""

    entry: str
    version: str
    task: str
    utility: float
    """-1 hurt, 0 no difference, 1 help."""
    decision: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits on second passes in a task or an episode."""

    passes: int | None = None
    """Maximum number of second passes in a task, or in a whole episode."""
    cooldown: int = 0
    """Number of episode steps to wait after a consultation before the next one."""

    def __post_init__(self) -> None:
        if self.passes is not None:
            refuse_count("Budget(passes)", self.passes, least=0)
        refuse_count("Budget(cooldown)", self.cooldown, least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUse:
    """The part of its budget that an episode has used so far."""

    passes: int = 0
    steps_since: int | None = None
    """Steps since the last consultation; None: memory was never consulted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrator:
    """A small logistic model of the probability of being right, fitted on the fit side."""

    features: tuple[str, ...]
    """Names of signals, `agreement` (with the first pass) or `recall` (the best recall score)."""
    weights: tuple[float, ...]
    bias: float
    means: tuple[float, ...]
    scales: tuple[float, ...]
    floors: tuple[float, ...] = ()
    """Lower bound of each feature, so that a pass without an answer is not an outlier; empty: no bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrators:
    """The calibrators of a policy: one for the first pass and one for each source."""

    first: Calibrator
    sources: Mapping[str, Calibrator] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeEnsemble:
    """A sum of decision trees over named features: plain arrays with one item per node."""

    features: tuple[str, ...]
    roots: tuple[int, ...]
    """The root node of each tree."""
    feature: tuple[int, ...]
    """Which feature a node looks at; -1: a leaf."""
    threshold: tuple[float, ...]
    """Go left if the feature is at most this, else right."""
    left: tuple[int, ...]
    right: tuple[int, ...]
    value: tuple[float, ...]
    """What a leaf adds; of an inner node, the mean of the rows that reached it."""
    base: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueTrees:
    """The two estimators of a value policy."""

    answer: TreeEnsemble
    """Log-odds that an answer is right, from all passes so far."""
    gain: TreeEnsemble
    """The expected gain in accuracy of asking a source that was not asked yet."""
    origin: str = OWN_ROWS
    """What they were fitted on: a study's own rows, or the name of a prior."""
    by_source: bool = True
    """Whether they tell the sources of the policy apart; a prior cannot."""
    prior: "ValueTrees | None" = None
    """Trees fitted on other studies, whose estimates are features of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRule:
    """What memory is worth: a fitted estimate of V = E[Δ − λk] (eq. 3) in place of thresholds."""

    trees: ValueTrees
    costs: tuple[float, ...]
    """What a pass of each source of the policy costs on average, in `unit`."""
    unit: CostUnit = "calls"
    cost: float = 0.01
    """λ: what a call, or 1,000 tokens, costs in accuracy."""
    margin: float = 0.0
    """How much likelier to be right than the first answer another one must be."""


Combination = Literal["cascade", "dual", "agree", "value"]
_COMBINATIONS = get_args(Combination)


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
    combine: Combination = "cascade"
    """cascade: the first accepted candidate wins; dual: all are decoded and the surest accepted one wins;
    agree: an accepted candidate wins if another gives the same answer and the first pass does not;
    value: ask while the expected gain exceeds the cost, then take the answer that is likeliest right."""
    margins: Mapping[str, float] | None = None
    """Per source: accept iff candidate ≥ baseline + margin (eq. 7); None: no margin test."""
    guards: tuple[str, ...] = ("format", "valid")
    budget: Budget = Budget()
    calibrators: Calibrators | None = None
    """For the signal `calibrated`."""
    value: ValueRule | None = None
    """For the combination `value`, which needs neither threshold nor margins."""

    def __post_init__(self) -> None:
        """Replaying makes many thousands of policies: this takes about a microsecond."""
        if not (
            self.combine in _COMBINATIONS
            and is_number(self.threshold)
            and isinstance(self.sources, tuple)
            and isinstance(self.guards, tuple)
            and (self.margins is None or all(map(is_number, self.margins.values())))
        ):
            raise PolicyError(_policy_problem(self))


def _policy_problem(policy: Policy) -> str:
    if policy.combine not in _COMBINATIONS:
        return f"the policy's combine is {policy.combine!r}; choose one of {', '.join(_COMBINATIONS)}"
    if not is_number(policy.threshold):
        return f"the policy's threshold is {policy.threshold!r}, which is not a number"
    names: dict[str, object] = {"sources": policy.sources, "guards": policy.guards}
    for name, given in names.items():
        if not isinstance(given, tuple):
            return f"the policy's {name} are {given!r}; give a tuple of names, such as ('desk',)"
    return f"the policy's margins are {policy.margins!r}; each must be a number"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    choice: Literal["keep", "consult"]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    choice: Literal["accept", "rollback"]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A randomised comparison: a fair coin, drawn before decoding, decides whether memory may be used."""

    share: float
    """Share of the answers that take part in such a trial."""
    allowed: bool
    """The coin: whether an accepted memory answer may be used; if not, the first answer stands."""
    accepted: int | None = None
    """Index of the candidate that the policy accepted, whatever the coin; None: the first pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """How a rollout treats one answer."""

    mode: RolloutMode
    arm: ServedArm
    share: float
    """Share of the keys whose answers the policy chooses."""
    key: str
    """A keyed digest of the user or the conversation; equal keys have the same arm."""
    accepted: int | None = None
    """Index of the candidate that the policy accepted, whether or not it was served; None: the first pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A failure that did not lose the answer: its stage and its error."""

    stage: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A pass ready to be decoded: its first prompt and the recalled entries."""

    prompt: Prompt
    recalls: tuple[Recall, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One pass: the source's prompt, the model's reply and its measurements."""

    source: str
    prompt: Prompt
    decode: Decode
    recalls: tuple[Recall, ...] = ()
    status: PassStatus = "decoded"
    error: str = ""
    """Why the pass failed."""
    signals: Mapping[str, float] = field(default_factory=dict)
    """Confidence per signal; an unavailable signal has no key."""
    guards: Mapping[str, str] = field(default_factory=dict)
    """Reason per guard that checked the pass; empty: the guard passed it."""
    calls: int = 1
    usage: Usage = NO_USAGE
    """Tokens over all calls of this pass."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A second pass with its verdict; a pass that was not decoded is always rolled back."""

    attempt: Attempt
    confidence: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureEffect:
    """What one feature added to the log-odds that an answer is right."""

    feature: str
    value: float
    effect: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEstimate:
    """How likely an answer is right, and the features that moved the estimate most."""

    source: str
    chance: float
    reasons: tuple[FeatureEffect, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GainEstimate:
    """The expected gain of asking the best source at one point, against its cost."""

    source: str
    gain: float
    cost: float
    asked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueTrace:
    """How a value policy came to its answer."""

    steps: tuple[GainEstimate, ...]
    """One for each pass that was bought, and one for the point at which it stopped buying."""
    answers: tuple[AnswerEstimate, ...]
    """The first pass, then each consulted source that answered."""
    margin: float | None = None
    """By how much an answer must be likelier than the first; None in early records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The answer to a task and everything that led to it."""

    task: Task
    policy: Policy
    baseline: Attempt
    """The first pass."""
    confidence: float | None
    """Of the first pass, by the policy's signal; None if it is not available."""
    route: Route
    candidates: tuple[Candidate, ...] = ()
    verdict: Verdict | None = None
    """None if memory was not consulted."""
    chosen: int | None = None
    """Index of the candidate that became the answer; None: the first answer stands."""
    calls: int = 1
    """All model calls for this answer, including those of its signals."""
    usage: Usage = NO_USAGE
    """Tokens over all these calls."""
    faults: tuple[Fault, ...] = ()
    seconds: float = 0.0
    overhead_seconds: float = 0.0
    """Time during which no model call was in progress."""
    decision: str = ""
    """The id of the decision record."""
    model: Traits = Traits(name="")
    sources: Mapping[str, Spec] = field(default_factory=dict)
    """The settings of the sources that the policy names."""
    value: ValueTrace | None = None
    """Of a value policy: what it estimated."""
    trial: Trial | None = None
    """None if this answer took part in no trial."""
    assignment: Assignment | None = None
    """None outside rollouts."""

    @property
    def decode(self) -> Decode:
        """The pass that became the answer."""
        return self.baseline.decode if self.chosen is None else self.candidates[self.chosen].attempt.decode

    @property
    def answer(self) -> str:
        return self.decode.answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What an agent sees of its environment after a reset or an action."""

    text: str
    actions: tuple[str, ...] = ()
    """The valid actions; one that ends with `[...]` allows any text in the brackets. Empty: anything."""
    score: float = 0.0
    """From 0 to 1; 1 is success."""
    done: bool = False
    goal: str = ""
    """What the agent is asked to do; empty: the text of the first observation says it."""
    kind: str = ""
    """The type of the goal; memory about another type is not recalled."""
    subject: str = ""
    """The content that several goals may share, such as a product; memory is not built from the subjects
    of the fit and the test side."""
