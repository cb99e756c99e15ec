"""A chat request of the OpenAI API as a task, and the requests that heedful leaves alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from heedful.models.chat_messages import message_of, schema_of, tools_of
from heedful.types import Message, Task, TaskTemplate

Fields = Mapping[str, Any]
"""The fields of a request, as the caller gave them."""


@dataclass(frozen=True, slots=True)
class Untouched:
    """Why a request is passed on without control."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTask:
    """A request as a task, with its messages as the caller wrote them."""

    task: Task
    messages: tuple[tuple[Message, Fields], ...]

    def as_sent(self, message: Message) -> Fields | None:
        """The caller's own form of a message; None if heedful wrote it."""
        return next((fields for known, fields in self.messages if known == message), None)


def chat_task(fields: Fields, template: TaskTemplate = TaskTemplate()) -> ChatTask | Untouched:
    """The task of a request; the template gives the answer pattern, never a word of the prompt."""
    try:
        return _read(fields, template)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        return Untouched(f"the request has an unknown form: {error}")


def _read(fields: Fields, template: TaskTemplate) -> ChatTask | Untouched:
    if isinstance(fields.get("n"), int) and fields["n"] > 1:
        return Untouched("n > 1")
    if "audio" in (_given(fields, "modalities", list) or ()):
        return Untouched("audio")
    written = [_plain(message) for message in fields["messages"]]
    if any(message["role"] == "function" for message in written):
        return Untouched("a message of the role function")
    messages = [message_of(message) for message in written]
    tools = _given(fields, "tools", list) or []
    if not all(tool.get("type") == "function" for tool in tools):
        return Untouched("a tool that is not a function")
    if messages[-1].role in ("assistant", "system"):
        return Untouched(f"the last message is of the role {messages[-1].role}")
    asked = messages[-1].role == "user"
    user = _given(fields, "user", str)
    task = Task(
        question=messages[-1].content if asked else "",
        earlier=tuple(messages[:-1] if asked else messages),
        tools=tools_of(tools),
        schema=schema_of(fields.get("response_format")),
        answer_pattern=template.answer_pattern,
        scope={"user": user} if user else {},
    )
    return ChatTask(task=task, messages=tuple(zip(messages, written, strict=True)))


def _given(fields: Fields, name: str, kind: type) -> Any:
    """A field of this type; clients have values of their own for "not given"."""
    value = fields.get(name)
    return value if isinstance(value, kind) else None


def _plain(message: Any) -> Fields:
    """A message as a mapping; clients also take the message objects of earlier replies."""
    if isinstance(message, Mapping):
        return message
    return cast(Fields, message.model_dump(exclude_none=True))
