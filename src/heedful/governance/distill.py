"""Distil a short list of rules from rollouts: what right attempts did and wrong ones did not.

For each task with attempts of both kinds, a writer model is asked for one lesson, and then what to do
with it: add it to the list, update or delete an existing rule, or nothing (the operations of
Training-Free GRPO, Cai et al. 2025). A lesson unlike every rule in the list is added without asking:
otherwise a small writer rewrites whatever rule it sees, and one rule absorbs the list. The writer's
replies are constrained to a JSON schema if the endpoint supports that; an invalid reply is counted
and changes nothing.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heedful.types import Message, Prompt

MOST_WORDS = 32
NEAREST = 5
"""How many rules of the list the writer sees next to a new lesson."""
RELATED = 0.6
"""Similarity (MiniLM) at which a rule counts as related to a lesson. It lies in a gap: of 27 lessons on
SVAMP, seven had an earlier one at .67 or more, the others none above .56."""
_LESSON_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"difference": {"type": "string"}, "rule": {"type": "string"}},
    "required": ["difference", "rule"],
    "additionalProperties": False,
}
_CHANGE_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "operation": {"enum": ["add", "update", "delete", "none"]},
        "id": {"type": "string"},
        "rule": {"type": "string"},
    },
    "required": ["operation", "id", "rule"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptGroup:
    """The attempts at one task."""

    task: str
    question: str
    right: str
    """A right attempt, or the worked solution if there is none."""
    wrong: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleChange:
    """One change to the list."""

    operation: str
    """`add`, `update`, `delete` or `none`."""
    id: str = ""
    rule: str = ""


def lesson_prompt(group: AttemptGroup) -> Prompt:
    """Ask what made the difference."""
    asked = (
        f"Problem:\n{group.question}\n\nRight solution:\n{group.right}\n\nWrong solution:\n{group.wrong}\n\n"
        "Say in one sentence what the wrong solution got wrong. Then write one general rule that would have "
        f"prevented it and helps with other problems: at most {MOST_WORDS} words, no names and no numbers of "
        'this problem. Reply with JSON: {"difference": "…", "rule": "…"}'
    )
    return _prompt(asked, _LESSON_SCHEMA)


def change_prompt(lesson: str, rules: Mapping[str, str]) -> Prompt:
    """Ask what to do with a lesson, given the rules nearest to it."""
    listed = "\n".join(f"[{id}] {text}" for id, text in rules.items()) or "(none yet)"
    asked = (
        f"Rules we have:\n{listed}\n\nNew lesson:\n{lesson}\n\n"
        "Choose one operation. add: the lesson is new. update: it improves the rule with that id; write the "
        "improved rule. delete: it shows that the rule with that id is wrong. none: a rule says it already. "
        f"A rule has at most {MOST_WORDS} words. "
        'Reply with JSON: {"operation": "add|update|delete|none", "id": "…", "rule": "…"}'
    )
    return _prompt(asked, _CHANGE_SCHEMA)


def fix_prompt(rule: str, harmed: Sequence[tuple[str, str, str]]) -> Prompt:
    """Ask for a better rule to replace a harmful one, given (question, answer without, answer with)."""
    cases = "\n\n".join(
        f"Problem:\n{question}\nRight, without the rule: {right}\nWrong, with the rule: {wrong}"
        for question, right, wrong in harmed
    )
    asked = (
        f"This rule did more harm than good:\n{rule}\n\n{cases}\n\n"
        "Say in one sentence when it misleads. Then write a rule in its place that says when it applies and "
        f"when it does not: at most {MOST_WORDS} words, no names and no numbers of these problems. "
        'Reply with JSON: {"difference": "…", "rule": "…"}'
    )
    return _prompt(asked, _LESSON_SCHEMA)


def _prompt(asked: str, schema: Mapping[str, Any]) -> Prompt:
    return Prompt(messages=(Message(role="user", content=asked),), max_tokens=160, schema=schema)


def read_lesson(text: str, problem: str) -> str | None:
    """The rule in a reply; None if it is invalid, too long or specific to this problem."""
    reply = _object(text)
    rule = None if reply is None else clean_rule(reply.get("rule"))
    return None if rule is None or _is_specific(rule, problem) else rule


def _is_specific(rule: str, problem: str) -> bool:
    """Whether a rule contains a name or a number of the problem, so it is not general."""
    special = re.findall(r"(?<=[\w,;] )[A-Z]\w*|\d+", rule)
    return not set(special).isdisjoint(re.findall(r"\w+", problem))


def read_change(text: str, lesson: str, rules: Mapping[str, str]) -> RuleChange | None:
    """The change in a reply; None if it is invalid: an unknown id, or an empty or long rule."""
    reply = _object(text)
    operation = reply.get("operation") if reply is not None else None
    if reply is None or operation not in ("add", "update", "delete", "none"):
        return None
    id = str(reply.get("id") or "").strip("[] ")
    if operation in ("update", "delete") and id not in rules:
        return None
    if operation in ("none", "delete"):
        return RuleChange(operation=operation, id=id)
    rule = clean_rule(reply.get("rule")) or (lesson if operation == "add" else None)
    return (
        None
        if rule is None
        else RuleChange(operation=operation, id=id if operation == "update" else "", rule=rule)
    )


def clean_rule(text: object) -> str | None:
    """The text as one line of 4 to 32 words; None if it is not."""
    if not isinstance(text, str):
        return None
    line = " ".join(re.sub(r"^\s*(?:[-*•]|\d+[.)]|rule:)\s*", "", text, flags=re.IGNORECASE).split())
    return line if 4 <= len(line.split()) <= MOST_WORDS else None


def changed(rules: Mapping[str, str], change: RuleChange, number: int) -> dict[str, str]:
    """The list after a change; a new rule gets the id `r` and the number of the step."""
    after = dict(rules)
    if change.operation == "add":
        if change.rule.casefold() not in (text.casefold() for text in rules.values()):
            after[f"r{number}"] = change.rule
    elif change.operation == "update":
        after[change.id] = change.rule
    elif change.operation == "delete":
        after.pop(change.id, None)
    return after


def _object(text: str) -> dict[str, Any] | None:
    """The first JSON object in a reply."""
    start = text.find("{")
    if start < 0:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text[start:])
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def grouped(attempts: Sequence[tuple[str, bool]], worked: str | None) -> tuple[str, str] | None:
    """A right attempt at a task, or its worked solution, and a wrong attempt; None without a contrast."""
    wrong = next((text for text, right in attempts if not right and text.strip()), None)
    right = next((text for text, good in attempts if good), worked)
    return None if wrong is None or right is None else (right, wrong)
