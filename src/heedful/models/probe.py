"""Find out what an endpoint supports."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from heedful.errors import LogprobError, ModelError
from heedful.models.chat import ChatModel
from heedful.stages.confidence import SIGNALS, check_logprobs
from heedful.types import Decode, Message, Prompt, Traits

LogprobKind = Literal["raw", "after temperature", "unusable", "none"]
QUESTION = "Name three colours of the rainbow."
LONG = "Here is a list of numbers: " + ", ".join(str(n) for n in range(200)) + ".\n\n"
COLOUR = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
TOP_LIMITS = (20, 5, 2, 1)
LOGPROB_FIELDS = frozenset({"logprobs", "top_logprobs"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """The observed capabilities of an endpoint."""

    endpoint: str
    model: str
    logprobs: LogprobKind
    logprob_problem: str = ""
    top_logprobs: int = 0
    """Number of alternatives per token."""
    deterministic_text: bool
    logprob_drift: float | None
    """Largest log-prob difference between two identical greedy requests."""
    cached_tokens: int | None
    """Cached prompt tokens in the second of two requests with a shared prefix; None: not reported."""
    json_schema: bool
    signals: tuple[str, ...] = field(default=())
    """Signals that the endpoint supports."""
    rejects: tuple[str, ...] = ()
    """Optional request fields that the endpoint rejects or, for log-probs, does not honour."""


async def probe(model: ChatModel) -> Probe:
    """Ask a few questions and report the capabilities; raises `ModelError` if the endpoint fails."""
    # kept until the event loop ends and closes their sessions
    plain = replace(model, logprobs=False)
    await plain.decode(_ask(QUESTION))
    learned = replace(model, logprobs=True, rejects=plain.refused, adapts=frozenset())
    models = [replace(learned, top_logprobs=top) for top in TOP_LIMITS]
    model = await _widest([*models, plain])
    first = await model.decode(_ask(QUESTION))
    again = await model.decode(_ask(QUESTION))
    kind, problem = await _kind(model, first)
    usable = kind in ("raw", "after temperature")
    top = min((len(token.top) for token in first.tokens), default=0) if usable else 0
    traits = Traits(name=model.model, logprobs=usable, top_logprobs=top)
    return Probe(
        endpoint=model.base_url,
        model=model.model,
        logprobs=kind,
        logprob_problem=problem,
        top_logprobs=top,
        deterministic_text=first.text == again.text,
        logprob_drift=_drift(first, again) if usable else None,
        cached_tokens=await _cached(model),
        json_schema=await _keeps_schema(model),
        signals=tuple(name for name, signal in SIGNALS.items() if signal.supported_by(traits)),
        rejects=_rejects(plain.refused, usable, top),
    )


async def check_fields(model: ChatModel) -> frozenset[str]:
    """The optional fields that an endpoint rejects, from one question, or a few if it rejects some."""
    decode = await model.decode(_ask(QUESTION))
    try:
        check_logprobs(decode)
        usable = bool(decode.tokens)
    except LogprobError:
        usable = False
    return model.refused if usable else model.refused | {"logprobs"}


def _rejects(refused: Collection[str], usable: bool, top: int) -> tuple[str, ...]:
    left_out = set(refused) - LOGPROB_FIELDS
    left_out |= {"logprobs"} if not usable else {"top_logprobs"} if top < 1 else set()
    return tuple(sorted(left_out))


def _ask(question: str, temperature: float = 0.0) -> Prompt:
    return Prompt(
        messages=(Message(role="user", content=question),), max_tokens=16, temperature=temperature, seed=1
    )


async def _widest(models: Sequence[ChatModel]) -> ChatModel:
    """The first model whose top_logprobs the endpoint accepts; the last one requests no log-probs."""
    for model in models[:-1]:
        try:
            await model.decode(_ask(QUESTION))
        except ModelError:
            continue
        return model
    return models[-1]


async def _kind(model: ChatModel, decode: Decode) -> tuple[LogprobKind, str]:
    """Raw log-probs do not change with the temperature; scaled ones do."""
    if not decode.tokens:
        return "none", ""
    try:
        check_logprobs(decode)
    except LogprobError as error:
        return "unusable", str(error)
    mild = await model.decode(_ask(QUESTION, 1.0))
    try:
        other = await model.decode(_ask(QUESTION, 2.0))
    except ModelError:  # some endpoints allow at most 1
        other = await model.decode(_ask(QUESTION, 0.3))
    if mild.tokens and other.tokens and mild.tokens[0].top and other.tokens[0].top:
        moved = abs(mild.tokens[0].top[0][1] - other.tokens[0].top[0][1])
        return ("after temperature", "") if moved > 0.05 else ("raw", "")
    return "raw", ""


def _drift(first: Decode, second: Decode) -> float | None:
    if first.text != second.text:
        return None
    pairs = zip(first.tokens, second.tokens, strict=False)
    return max((abs(a.logprob - b.logprob) for a, b in pairs), default=0.0)


async def _cached(model: ChatModel) -> int | None:
    try:
        await model.decode(_ask(LONG + "What is the first number?"))
        second = await model.decode(_ask(LONG + "What is the last number?"))
    except ModelError:  # the prompt may exceed the context
        return None
    return second.usage.cached_tokens or None


async def _keeps_schema(model: ChatModel) -> bool:
    prompt = replace(_ask("Name a colour of the rainbow as JSON."), schema=COLOUR, max_tokens=48)
    try:
        answer = json.loads((await model.decode(prompt)).text)
    except (ModelError, ValueError):
        return False
    return isinstance(answer, dict) and isinstance(answer.get("colour"), str)
