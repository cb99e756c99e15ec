"""Find the answer in a model's reply."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from heedful.errors import UsageError
from heedful.types import Decode, Task, ToolCall

_AMOUNT = re.compile(r"(?P<sign>-?)[$€£]? ?(?P<amount>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)")
THINKING = re.compile(r"\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)\s*|.*?</think(?:ing)?>\s*", re.DOTALL)
"""A think block at the start of a reply; chat templates may put its opening tag into the prompt."""


def refuse_empty(task: Task) -> None:
    """Raise `UsageError` for a task that asks nothing."""
    if not isinstance(task.question, str):
        raise UsageError(f"the task's question is {task.question!r}; set it to text")
    if not task.question.strip() and not task.earlier:
        raise UsageError("the task has neither a question nor a conversation; give it one")


def refuse_bad_pattern(task: Task) -> None:
    """Raise `UsageError` for an invalid answer pattern, before any model call."""
    try:
        re.compile(task.answer_pattern or "")
    except re.error as error:
        raise UsageError(
            f"the answer pattern {task.answer_pattern!r} is not a regular expression: {error}"
        ) from error


def read_answer(decode: Decode, task: Task) -> Decode:
    """The decode with its answer and the answer's position; the answer is empty if none is found."""
    if decode.tool_calls:
        return replace(decode, answer=calls_as_answer(decode.tool_calls), span=None)
    start, end = _answer_span(decode.text, task.answer_pattern)
    found = start < end
    return replace(decode, answer=decode.text[start:end], span=(start, end) if found else None)


def calls_as_answer(calls: Sequence[ToolCall]) -> str:
    """Tool calls as canonical JSON: one object, or a list of several."""
    read = [{"arguments": _arguments(call), "name": call.name} for call in calls]
    return json.dumps(read[0] if len(read) == 1 else read, sort_keys=True, ensure_ascii=False)


def _arguments(call: ToolCall) -> object:
    try:
        return json.loads(call.arguments)
    except ValueError:  # keep the raw text: the format guard refuses such a call
        return call.arguments


def thinking_in(text: str) -> "re.Match[str] | None":
    """The think block at the start of a reply; most replies do not even have the word."""
    return THINKING.match(text) if "think" in text else None


def without_thinking(text: str) -> str:
    """A reply without the think block at its start."""
    thought = thinking_in(text)
    return text[thought.end() :] if thought else text


def _answer_span(text: str, pattern: str | None) -> tuple[int, int]:
    start = len(text) - len(without_thinking(text))
    if pattern is None:
        return _trimmed(text, start, len(text))
    match = None
    for match in re.compile(pattern).finditer(text[start:]):  # noqa: B007 - the last match counts
        pass
    if match is None:
        return (0, 0)
    named = "answer" in match.re.groupindex
    first, last = match.span("answer" if named else 1 if match.re.groups else 0)
    return _trimmed(text, start + first, start + last)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    inner = text[start:end]
    return (start + len(inner) - len(inner.lstrip()), end - len(inner) + len(inner.rstrip()))


def same_answer(one: str, other: str) -> bool:
    """Whether two answers are equal up to case, spaces, a final full stop and the spelling of an amount."""
    return plain(one) == plain(other)


def is_amount(answer: str) -> bool:
    """Whether an answer is a bare number, perhaps with a currency sign."""
    return _AMOUNT.fullmatch(_tidy(answer)) is not None


def plain(answer: str) -> str:
    """The answer in normal form; a bare amount loses its currency sign and commas."""
    text = _tidy(answer)
    amount = _AMOUNT.fullmatch(text)
    if amount is None:
        return text
    whole, _, part = amount["amount"].replace(",", "").partition(".")
    return f"{amount['sign']}{whole}.{part.rstrip('0')}".rstrip(".")


def _tidy(answer: str) -> str:
    return " ".join(answer.casefold().split()).rstrip(".")
