"""An outcome as a chat completion: the chosen reply, the usage of all passes, and headers."""

from collections.abc import Mapping, Sequence
from typing import Any

from heedful.models.chat_request import json_tool_calls
from heedful.serve.chat_call import ChatCall
from heedful.serve.request_model import Completion, RequestModel
from heedful.types import Attempt, Decode, Outcome, Usage

NO_VERDICT = "none"


def decision_headers(outcome: Outcome) -> dict[str, str]:
    """The headers that name the decision, its route and its verdict."""
    return {
        "x-heedful-decision": outcome.decision,
        "x-heedful-route": outcome.route.choice,
        "x-heedful-verdict": NO_VERDICT if outcome.verdict is None else outcome.verdict.choice,
    }


def answer_json(outcome: Outcome, model: RequestModel) -> dict[str, Any]:
    """The chat completion of an outcome, in the words of the upstream's own reply."""
    chosen = model.completion_of(outcome.decode)
    reply = _shown(_built(outcome.decode) if chosen is None else chosen.json, model)
    reply["usage"] = usage_json(outcome, model.completions)
    return reply


def first_json(model: RequestModel) -> dict[str, Any]:
    """The chat completion of the first pass, before anything is decided."""
    first = model.completions[0]
    reply = _shown(first.json, model)
    share = {"source": "none", "status": "decoded", "calls": 1, **_tokens(first.decode.usage)}
    reply["usage"] = {**_sum([first.json.get("usage")]), "heedful": {"calls": 1, "passes": [share]}}
    return reply


def _shown(json: Mapping[str, Any], model: RequestModel) -> dict[str, Any]:
    """A completion without the log-probs that the client did not ask for."""
    reply = dict(json)
    if not model.call.fields.get("logprobs"):
        first, *others = reply["choices"]
        reply["choices"] = [{**first, "logprobs": None}, *others] if "logprobs" in first else reply["choices"]
    return reply


def usage_json(outcome: Outcome, completions: Sequence[Completion]) -> dict[str, Any]:
    """The tokens of all passes, with the share of each pass under `heedful`."""
    attempts = (outcome.baseline, *(candidate.attempt for candidate in outcome.candidates))
    summed = _sum([known.json.get("usage") for known in completions])
    passes = [_share(attempt) for attempt in attempts]
    return {**summed, "heedful": {"calls": outcome.calls, "passes": passes}}


def chunks_of(call: ChatCall, reply: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A chat completion as the chunks of a stream: the message, its end, and the usage if it is wanted."""
    head = {name: value for name, value in reply.items() if name not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"
    choice = reply["choices"][0]
    other = {k: v for k, v in choice.items() if k not in ("message", "finish_reason", "index")}
    delta = dict(choice["message"])
    if calls := delta.get("tool_calls"):
        delta["tool_calls"] = [{"index": at, **one} for at, one in enumerate(calls)]
    spoken = {"index": 0, "delta": delta, "finish_reason": None, **other}
    ended: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": choice.get("finish_reason") or "stop"}
    chunks = [{**head, "choices": [spoken]}, {**head, "choices": [ended]}]
    return [*chunks, {**head, "choices": [], "usage": reply["usage"]}] if call.include_usage else chunks


def _share(attempt: Attempt) -> dict[str, Any]:
    return {
        "source": attempt.source,
        "status": attempt.status,
        "calls": attempt.calls,
        **_tokens(attempt.usage),
    }


def _tokens(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.tokens,
    }


def _sum(usages: Sequence[Any]) -> dict[str, Any]:
    """Add usages field by field, and their details too."""
    total: dict[str, Any] = {}
    for usage in usages:
        for name, value in usage.items() if isinstance(usage, dict) else ():
            if isinstance(value, dict):
                total[name] = _sum([total.get(name), value])
            elif isinstance(value, int | float) and isinstance(total.get(name, 0), int | float):
                total[name] = total.get(name, 0) + value
            else:
                total.setdefault(name, value)
    return total


def _built(decode: Decode) -> dict[str, Any]:
    """A completion for an answer that no single reply contains."""
    message: dict[str, Any] = {"role": "assistant", "content": decode.text}
    message |= {"tool_calls": json_tool_calls(decode.tool_calls)} if decode.tool_calls else {}
    choice = {"index": 0, "message": message, "finish_reason": decode.finish}
    return {"id": "", "object": "chat.completion", "created": 0, "model": decode.model, "choices": [choice]}
