"""The chunks of a streamed chat completion, put together."""

from collections.abc import Iterable, Mapping
from typing import Any


def whole_completion(chunks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The completion that the chunks make: text, tool calls, log-probs and usage."""
    texts: list[str] = []
    calls: dict[int, dict[str, Any]] = {}
    tokens: list[Any] = []
    finish, usage = None, None
    for chunk in chunks:
        usage = chunk.get("usage") or usage
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            texts.append(delta.get("content") or "")
            for part in delta.get("tool_calls") or ():
                _add_call(calls, part)
            tokens += (choice.get("logprobs") or {}).get("content") or ()
            finish = choice.get("finish_reason") or finish
    message = {"content": "".join(texts), "tool_calls": [calls[place] for place in sorted(calls)]}
    logprobs = {"content": tokens} if tokens else None
    return {
        "choices": [{"message": message, "logprobs": logprobs, "finish_reason": finish}],
        "usage": usage,
    }


def _add_call(calls: dict[int, dict[str, Any]], part: Mapping[str, Any]) -> None:
    """Add a piece of a tool call: id and name come once, the arguments in pieces."""
    function = part.get("function") or {}
    call = calls.setdefault(part.get("index") or 0, {"id": "", "function": {"name": "", "arguments": ""}})
    call["id"] = part.get("id") or call["id"]
    call["function"]["name"] = function.get("name") or call["function"]["name"]
    call["function"]["arguments"] += function.get("arguments") or ""
