"""The messages, tools and schema of a chat request, as the core knows them."""

from collections.abc import Mapping
from typing import Any

from heedful.types import JsonSchema, Message, Role, Tool, ToolCall

JsonMessage = Mapping[str, Any]
ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
TEXT_PARTS = ("text", "refusal")
ANY_OBJECT: JsonSchema = {"type": "object"}


def text_of(message: JsonMessage) -> str:
    """The text of a message; raises `ValueError` for content that is not text."""
    content = message.get("content")
    if not isinstance(content, list | tuple):
        return content or ""
    if other := next((part["type"] for part in content if part["type"] not in TEXT_PARTS), ""):
        raise ValueError(f"content of the type {other}")
    return "\n".join([part[part["type"]] for part in content])


def message_of(message: JsonMessage) -> Message:
    """A message of a request; raises a lookup, type or value error if it has an unknown form."""
    return Message(
        role=ROLES[message["role"]],
        content=text_of(message),
        tool_calls=tuple(map(_call, message.get("tool_calls") or ())),
        tool_call_id=str(message.get("tool_call_id") or ""),
    )


def _call(call: Mapping[str, Any]) -> ToolCall:
    function = call["function"]
    arguments = function.get("arguments") or "{}"
    return ToolCall(id=str(call.get("id") or ""), name=function["name"], arguments=arguments)


def tools_of(tools: object) -> tuple[Tool, ...]:
    """The functions among the tools of a request; the guards know no other kind."""
    listed = tools if isinstance(tools, list) else []
    functions = [tool.get("function") for tool in listed if isinstance(tool, Mapping)]
    return tuple(
        Tool(
            name=function["name"],
            description=str(function.get("description") or ""),
            parameters=_object(function.get("parameters")) or {},
        )
        for function in functions
        if isinstance(function, Mapping) and isinstance(function.get("name"), str)
    )


def schema_of(response_format: object) -> JsonSchema | None:
    """The schema that the answer must satisfy, if the request has one."""
    wanted = _object(response_format) or {}
    if wanted.get("type") == "json_object":
        return ANY_OBJECT
    if wanted.get("type") != "json_schema":
        return None
    return _object((_object(wanted.get("json_schema")) or {}).get("schema")) or ANY_OBJECT


def _object(value: object) -> Mapping[str, Any] | None:
    return value if isinstance(value, Mapping) else None
