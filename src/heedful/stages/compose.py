"""Compose the prompt of a pass from conversation, question and memory."""

from collections.abc import Sequence
from dataclasses import replace

from heedful.types import Entry, Message, Placement, Prompt, Task

HEADING = "Notes that may help:"


def first_prompt(task: Task) -> Prompt:
    """The memory-free prompt."""
    return _prompt(task, user=task.question)


def compose(
    task: Task, entries: Sequence[Entry], placement: Placement = "auto", heading: str = HEADING
) -> Prompt:
    """The prompt with memory at its placement.

    `after` puts the notes after the question: the first pass's text stays a prefix, so a server's prefix
    cache applies. `turns` adds exemplars as chat turns before the conversation; other entries cannot be turns
    and go `after`. `auto` is `turns` for exemplars and `after` for the rest. `advice` is `after` without the
    situations of hints, which small models copy.
    """
    as_turns = [e for e in entries if placement in ("auto", "turns") and e.kind == "exemplar"]
    line = _advice if placement == "advice" else _line
    notes = _notes([line(entry) for entry in entries if entry not in as_turns], heading)
    turns = tuple(turn for entry in as_turns for turn in _turns(entry))
    if placement == "system":
        return _prompt(task, system=notes, user=task.question)
    if placement == "before":
        return _prompt(task, user=_joined(notes, task.question))
    return _prompt(task, turns=turns, user=_joined(task.question, notes))


def _prompt(task: Task, *, system: str = "", turns: tuple[Message, ...] = (), user: str) -> Prompt:
    opening, conversation = _opening(task, system)
    asked = () if task.earlier and not user else (Message(role="user", content=user),)
    return Prompt(
        messages=(*opening, *turns, *conversation, *asked),
        max_tokens=task.max_tokens,
        schema=task.schema,
        tools=task.tools,
    )


def _opening(task: Task, notes: str) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """The opening system messages, the last one with the notes, and the rest of the conversation."""
    earlier = task.earlier
    leading = next((at for at, message in enumerate(earlier) if message.role != "system"), len(earlier))
    own = (Message(role="system", content=task.instructions),) if task.instructions else ()
    opening = (*own, *earlier[:leading])
    if notes and opening:
        opening = (*opening[:-1], replace(opening[-1], content=_joined(opening[-1].content, notes)))
    elif notes:
        opening = (Message(role="system", content=notes),)
    return opening, earlier[leading:]


def _turns(entry: Entry) -> tuple[Message, Message]:
    return Message(role="user", content=entry.text), Message(role="assistant", content=entry.response)


def _notes(lines: Sequence[str], heading: str) -> str:
    return "\n".join([heading, *(f"- {line}" for line in lines)]) if lines else ""


def _advice(entry: Entry) -> str:
    return entry.response if entry.kind == "hint" and entry.response else _line(entry)


def _line(entry: Entry) -> str:
    return f"{entry.text}\n  {entry.response}" if entry.response else entry.text


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
