"""Structural checks on a candidate (eq. 8); each refusal has a reason code, an inactive guard passes."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from heedful.types import Decode, Task

from .answer import same_answer


@dataclass(frozen=True, slots=True)
class FormatGuard:
    """The answer is there, and satisfies the task's JSON schema when it has one."""

    def refuses(self, task: Task, baseline: Decode, candidate: Decode) -> str | None:
        if not candidate.answer:
            return "format:no-answer"
        return None if task.schema is None else _schema_fault(candidate.answer, task.schema)


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
    """An agent does not repeat an action that it already took at this very observation."""

    def refuses(self, task: Task, baseline: Decode, candidate: Decode) -> str | None:
        for step in task.history:
            if step.observation == task.question and same_answer(step.action, candidate.answer):
                return "progress:repeated"
        return None


@dataclass(frozen=True, slots=True)
class ContractGuard:
    """The user's own predicate on task and answer holds."""

    holds: Callable[[Task, str], bool]
    name: str = "contract"

    def refuses(self, task: Task, baseline: Decode, candidate: Decode) -> str | None:
        return None if self.holds(task, candidate.answer) else f"{self.name}:broken"
