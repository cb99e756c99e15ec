"""The body of a chat request: what it names, and whether heedful can control its answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from heedful.models.chat_messages import ROLES, TEXT_PARTS, text_of
from heedful.serve.refusal import RefusalError

SUFFIX = "+heedful"
"""After the model's name: `gpt-x+heedful/support` chooses the policy `support`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCall:
    """A chat request as the client sent it."""

    body: bytes
    fields: Mapping[str, Any]
    """The JSON object; the model's name has no suffix."""
    policy: str
    """The policy that the model's suffix names; empty: none."""

    @property
    def model(self) -> str:
        name = self.fields.get("model")
        return name if isinstance(name, str) else ""

    @property
    def user(self) -> str:
        name = self.fields.get("user")
        return name.strip() if isinstance(name, str) else ""

    @property
    def stream(self) -> bool:
        return self.fields.get("stream") is True

    @property
    def include_usage(self) -> bool:
        """Whether a stream ends with the usage."""
        options = self.fields.get("stream_options")
        return isinstance(options, dict) and options.get("include_usage") is True


def read_call(body: bytes) -> ChatCall:
    """Read the body of a chat request; only a body that is not a JSON object is refused."""
    try:
        fields = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise RefusalError(400, f"the body is not valid JSON ({error}); send a chat request") from error
    if not isinstance(fields, dict):
        raise RefusalError(400, "the body is not a JSON object; send a chat request")
    name = fields.get("model")
    if not isinstance(name, str) or SUFFIX not in name:
        return ChatCall(body=body, fields=fields, policy="")
    model, _, suffix = name.partition(SUFFIX)
    if suffix and not suffix.startswith("/"):
        return ChatCall(body=body, fields=fields, policy="")
    fields = {**fields, "model": model}
    return ChatCall(body=msgspec.json.encode(fields), fields=fields, policy=suffix[1:])


def bypass_reason(fields: Mapping[str, Any]) -> str:
    """Why heedful cannot control the answer to a chat request; empty if it can."""
    if fields.get("n") not in (None, 1):
        return "n is not 1"
    if fields.get("audio") is not None or fields.get("modalities") not in (None, ["text"]):
        return "audio"
    if not _are_functions(fields.get("tools")):
        return "a tool that is not a function"
    messages = fields.get("messages")
    if not isinstance(messages, list) or not messages:
        return "no messages"
    return next(filter(None, map(_message_problem, messages)), "") or _ending_problem(messages)


def _are_functions(tools: object) -> bool:
    """Whether every tool is one whose calls the core can read."""
    return not isinstance(tools, list) or all(
        not isinstance(tool, dict) or tool.get("type", "function") == "function" for tool in tools
    )


def _message_problem(message: object) -> str:
    if not isinstance(message, dict):
        return "unreadable message"
    if message.get("role") not in tuple(ROLES):  # a role may be anything, even unhashable
        return "unknown role"
    content = message.get("content")
    if not (content is None or isinstance(content, str) or _is_text(content)):
        return "content other than text"
    if message.get("audio") is not None:
        return "audio"
    return "" if _readable_calls(message.get("tool_calls")) else "unreadable tool call"


def _is_text(content: object) -> bool:
    return isinstance(content, list) and all(
        isinstance(part, dict)
        and (kind := part.get("type")) in TEXT_PARTS
        and isinstance(part.get(kind), str)
        for part in content
    )


def _readable_calls(calls: object) -> bool:
    return calls is None or (
        isinstance(calls, list)
        and all(
            isinstance(call, dict)
            and isinstance(function := call.get("function"), dict)
            and isinstance(function.get("name"), str)
            and isinstance(function.get("arguments", ""), str)
            for call in calls
        )
    )


def _ending_problem(messages: Sequence[Mapping[str, Any]]) -> str:
    """The core answers a user's turn or continues after a tool's result."""
    last = messages[-1]
    if last["role"] in ("tool", "function"):
        return ""
    if last["role"] != "user":
        return "the last turn is not the user's or a tool's"
    return "" if text_of(last).strip() else "empty question"
