"""Damage an entry on purpose at nearly the same length, to measure what its content is worth."""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import add, mul, sub
from types import MappingProxyType

from heedful.errors import UsageError
from heedful.types import Entry


def _both_ways(*pairs: tuple[str, str]) -> Mapping[str, str]:
    """Each word mapped to its opposite; the first one if it has several."""
    opposites: dict[str, str] = {}
    for one, other in pairs:
        opposites.setdefault(one, other)
        opposites.setdefault(other, one)
    return MappingProxyType(opposites)


_OPERATIONS = _both_ways(
    ("minus", "plus"),
    ("subtract", "add"),
    ("subtracting", "adding"),
    ("multiply", "divide"),
    ("difference", "sum"),
    ("times", "minus"),
)
_MEASURES = _both_ways(
    ("more", "less"),
    ("fewer", "more"),
    ("larger", "smaller"),
    ("increase", "decrease"),
    ("first", "last"),
    ("total", "rest"),
    ("before", "after"),
)
_SIGNS = MappingProxyType({"+": "-", "-": "+", "*": "/", "/": "*"})
_EQUATION = re.compile(r"(?<![\d.,])(\d+) ([-+*x/]) (?:\$ ?)?(\d+) = (?:\$ ?)?(\d+)(?![\d.,]*\d)")
_OTHER_SIGNS: Mapping[str, Mapping[str, Callable[[int, int], int]]] = MappingProxyType(
    {
        "+": {"-": sub, "*": mul},
        "-": {"+": add},
        "*": {"+": add, "-": sub},
        "x": {"+": add, "-": sub},
        "/": {"*": mul, "-": sub},
    }
)
_CONDITIONS = (
    (r"\bis not\b", "is"),
    (r"\bdo not\b", "do"),
    (r"\bnever\b", "always"),
    (r"\balways\b", "never"),
    (r"\bonly if\b", "unless"),
    (r"\bif\b", "unless"),
    (r"\bwhen\b", "unless"),
    (r"\bcan\b", "cannot"),
    (r"\bis\b", "is not"),
    (r"\bmust\b", "must not"),
)

Damage = Callable[[str, random.Random], str]
"""A text with one kind of damage; the same text if there is nothing to damage."""


def wrong_operation(text: str, rng: random.Random) -> str:
    """Another operation: worked through in the last equation, else another sign or an opposite word."""
    if (worked := _worked_wrongly(text)) is not None:
        return worked
    signed = re.sub(r"(?<=\d )[-+*/](?= \(?\d)", lambda sign: _SIGNS[sign[0]], text)
    if signed != text:
        return signed
    for words in (_OPERATIONS, _MEASURES):
        found = list(re.finditer(rf"\b({'|'.join(words)})\b", text, re.IGNORECASE))
        if found:
            one = rng.choice(found)
            return f"{text[: one.start()]}{_like(one[0], words[one[0].lower()])}{text[one.end() :]}"
    return text


def _worked_wrongly(text: str) -> str | None:
    """The last equation with another operation and its result, which also replaces later mentions."""
    equations = list(_EQUATION.finditer(text))
    if not equations:
        return None
    last = equations[-1]
    left, sign, right, result = last.groups()
    for other, operation in _OTHER_SIGNS[sign].items():
        wrong = operation(int(left), int(right))
        if wrong >= 0 and str(wrong) != result:
            rest = re.sub(rf"(?<![\d.]){result}(?![\d.]*\d)", str(wrong), text[last.start(4) :])
            return f"{text[: last.start(2)]}{other}{text[last.end(2) : last.start(4)]}{rest}"
    return None


def wrong_number(text: str, rng: random.Random) -> str:
    """Replace every number by another with as many digits, consistently."""
    drawn: dict[str, str] = {}

    def another(match: re.Match[str]) -> str:
        number = match[0]
        lowest = 10 ** (len(number) - 1) if len(number) > 1 else 1
        while number not in drawn or drawn[number] == number:
            drawn[number] = str(rng.randrange(lowest, 10 ** len(number)))
        return drawn[number]

    return re.sub(r"\d+", another, text)


def negated_condition(text: str, rng: random.Random) -> str:
    """Negate or reverse the first condition."""
    for pattern, other in _CONDITIONS:
        found = re.search(pattern, text, re.IGNORECASE)
        if found is not None:
            return f"{text[: found.start()]}{_like(found[0], other)}{text[found.end() :]}"
    return text


DAMAGES: Mapping[str, Damage] = MappingProxyType(
    {
        "wrong-operation": wrong_operation,
        "wrong-number": wrong_number,
        "negated-condition": negated_condition,
    }
)


def corrupted(entry: Entry, seed: int = 0, kinds: tuple[str, ...] = tuple(DAMAGES)) -> Entry:
    """The entry with the first kind of damage that applies to its text, or to an exemplar's worked answer."""
    rng = random.Random(f"{seed} {entry.id}")
    for kind in kinds:
        text = entry.response if entry.kind == "exemplar" else entry.text
        damaged = DAMAGES[kind](text, rng)
        if damaged != text:
            tags = (*entry.tags, kind)
            return (
                replace(entry, response=damaged, tags=tags)
                if entry.kind == "exemplar"
                else replace(entry, text=damaged, tags=tags)
            )
    raise UsageError(f"entry {entry.id!r} has nothing to damage; write an edit yourself")


def _like(old: str, new: str) -> str:
    """The new word, capitalised like the old one."""
    return new.capitalize() if old[:1].isupper() else new
