"""Structural checks on a candidate (eq. 8); each refusal has a reason code."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from heedful.types import Decode, Message, Task, ToolCall

from .answer import calls_as_answer, same_answer


@dataclass(frozen=True, slots=True)
class FormatGuard:
    """There is an answer, and it satisfies the task's JSON schema if there is one; tool calls name known
    tools and satisfy their argument schemas."""

    def refuses(self, task: Task, baseline: Decode, candidate: Decode) -> str | None:
        if candidate.tool_calls:
            faults = (_call_fault(call, task) for call in candidate.tool_calls)
            return next((fault for fault in faults if fault), None)
        if not candidate.answer:
            return "format:no-answer"
        return None if task.schema is None else _schema_fault(candidate.answer, task.schema)


def _call_fault(call: ToolCall, task: Task) -> str | None:
    schema = next((tool.parameters for tool in task.tools if tool.name == call.name), None)
    if schema is None:
        return "format:unknown-tool"
    return "format:tool-arguments" if _schema_fault(call.arguments, schema) else None


def _schema_fault(answer: str, schema: Mapping[str, object]) -> str | None:
    from jsonschema import ValidationError, validate

    try:
        validate(json.loads(answer), dict(schema))
    except json.JSONDecodeError:
        return "format:not-json"
    except ValidationError:
        return "format:schema"
    return None


@dataclass(frozen=True, slots=True)
class ValidGuard:
    """The answer is one of the allowed answers or actions."""

    def refuses(self, task: Task, baseline: Decode, candidate: Decode) -> str | None:
        if not task.choices or any(same_answer(candidate.answer, choice) for choice in task.choices):
            return None
        return "valid:not-allowed"


@dataclass(frozen=True, slots=True)
class ProgressGuard:
    """An agent does not repeat an action that it already took at the same observation."""

    def refuses(self, task: Task, baseline: Decode, candidate: Decode) -> str | None:
        turns = zip(task.earlier, task.earlier[1:], strict=False)
        repeated = any(
            seen.role == "user" and seen.content == task.question and _did(reply, candidate.answer)
            for seen, reply in turns
        )
        return "progress:repeated" if repeated else None


def _did(message: Message, answer: str) -> bool:
    """Whether an assistant's message is this answer or action."""
    action = calls_as_answer(message.tool_calls) if message.tool_calls else message.content
    return message.role == "assistant" and same_answer(action, answer)


@dataclass(frozen=True, slots=True)
class ContractGuard:
    """A user-defined predicate on task and answer holds."""

    holds: Callable[[Task, str], bool]
    name: str = "contract"

    def refuses(self, task: Task, baseline: Decode, candidate: Decode) -> str | None:
        return None if self.holds(task, candidate.answer) else f"{self.name}:broken"
