"""A chat request: the prompt as JSON, without the fields that an endpoint rejects."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from heedful.errors import UsageError
from heedful.types import Message, Prompt, Tool, ToolCall

OPTIONAL_FIELDS = frozenset({"logprobs", "top_logprobs", "temperature", "max_tokens", "seed"})
"""Fields that a request can do without; `max_tokens` becomes `max_completion_tokens`."""

OWN_FIELDS = OPTIONAL_FIELDS | {"messages", "model", "max_completion_tokens", "n", "stream"}
"""Fields that heedful sets itself, or whose default it relies on."""


def refuse_own_fields(extra: Mapping[str, Any]) -> None:
    """Refuse extra fields that would replace those of the prompt: passes could not be compared."""
    if own := sorted(OWN_FIELDS.intersection(extra)):
        named = ", ".join(own)
        raise UsageError(f"extra body fields cannot set {named}, which heedful sets itself; leave it out")


def prompt_fields(prompt: Prompt) -> dict[str, Any]:
    request: dict[str, Any] = {
        "messages": [message_fields(message) for message in prompt.messages],
        "max_tokens": prompt.max_tokens,
        "temperature": prompt.temperature,
    }
    if prompt.seed is not None:
        request["seed"] = prompt.seed
    if prompt.schema is not None:
        schema = {"name": "answer", "schema": dict(prompt.schema)}
        request["response_format"] = {"type": "json_schema", "json_schema": schema}
    if prompt.tools:
        request["tools"] = [_tool(tool) for tool in prompt.tools]
    return request


def accepted_fields(request: Mapping[str, Any], rejects: Collection[str]) -> dict[str, Any]:
    """The request without rejected fields; an endpoint without log-probs gets no alternatives either."""
    left_out = {*rejects, *(["top_logprobs"] if "logprobs" in rejects else [])}
    kept = {name: value for name, value in request.items() if name not in left_out}
    if "max_tokens" in rejects:
        kept["max_completion_tokens"] = request["max_tokens"]
    return kept


def rejected_field(message: str, request: Mapping[str, Any]) -> str | None:
    """The optional field of the request that an error message names; None if it names none."""
    words = set(re.findall(r"\w+", message.casefold()))
    if words & {"max_tokens", "max_completion_tokens"} and "max_tokens" in request:
        return "max_tokens"
    if "top_logprobs" in words and "top_logprobs" in request:
        return "top_logprobs"
    if words & {"logprobs", "top_logprobs", "logprob"} and "logprobs" in request:
        return "logprobs"
    temperature = request.get("temperature")
    sensible = isinstance(temperature, int | float) and temperature <= 1  # above, the value may be to blame
    if "temperature" in words and sensible:
        return "temperature"
    return "seed" if "seed" in words and "seed" in request else None


def message_fields(message: Message) -> dict[str, Any]:
    """A message in the API's JSON form."""
    fields: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        fields["tool_calls"] = json_tool_calls(message.tool_calls)
    if message.tool_call_id:
        fields["tool_call_id"] = message.tool_call_id
    return fields


def json_tool_calls(calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
    """Tool calls in the API's JSON form."""
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]


def _tool(tool: Tool) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    function = {"name": tool.name, **described, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}
