"""Say in plain words how data differ from their expected form; the decoder's own words name its types."""

import re
from collections.abc import Callable

_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object with keys",
    "null": "null",
}
_BOUNDS = {">=": "at least", ">": "above", "<=": "at most", "<": "below"}


def mismatch(error: Exception) -> str:
    """The problem of a decoding error: which key, what it must be, and what it is."""
    problem, _, place = str(error).partition(" - at ")
    key = place.strip("`").removeprefix("$").removeprefix(".").replace("[...]", ".…")
    for pattern, sentence in _SENTENCES:
        if match := pattern.fullmatch(problem):
            return sentence(match, f"`{key}`" if key else "")
    return f"{problem} (at `{key}`)" if key else problem


def plain_value_problem(message: str) -> str:
    """The problem of an option's value; the parser's checker speaks of its input and of parsing."""
    for pattern, words in _OPTION_WORDS:
        message = pattern.sub(words, message)
    return message


def _missing(match: re.Match[str], key: str) -> str:
    return f"the key `{match[1]}` is missing" + (f" in {key}" if key else "")


def _unknown(match: re.Match[str], key: str) -> str:
    return f"the key `{match[1]}` is unknown" + (f" in {key}" if key else "")


def _other_type(match: re.Match[str], key: str) -> str:
    return f"{key or 'it'} must be {_named(match[1])}, not {_named(match[2])}"


def _out_of_bounds(match: re.Match[str], key: str) -> str:
    return f"{key or 'it'} must be {_BOUNDS[match[1]]} {float(match[2]):g}"


def _wrong_length(match: re.Match[str], key: str) -> str:
    return f"{key or 'it'} must have {_BOUNDS[match[1]]} {match[2]} {'item' if match[2] == '1' else 'items'}"


def _unknown_value(match: re.Match[str], key: str) -> str:
    return f"{key or 'it'} has the unknown value {match[1]}"


def _named(types: str) -> str:
    return " or ".join(_WORDS.get(name, name) for name in types.split(" | "))


_SENTENCES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], str]], ...] = (
    (re.compile(r"Object missing required field `(.+)`"), _missing),
    (re.compile(r"Object contains unknown field `(.+)`"), _unknown),
    (re.compile(r"Expected `(.+)`, got `(.+)`"), _other_type),
    (re.compile(r"Expected `\w+` (>=|>|<=|<) (.+)"), _out_of_bounds),
    (re.compile(r"Expected `\w+` of length (>=|>|<=|<) (.+)"), _wrong_length),
    (re.compile(r"Invalid enum value (.+)"), _unknown_value),
    (re.compile(r"Input data was truncated"), lambda match, key: "the JSON ends too early"),
    (re.compile(r"JSON is malformed: .*\(byte (\d+)\)"), lambda match, key: f"not JSON at byte {match[1]}"),
)
_OPTION_WORDS = (
    (re.compile(r"Input should be greater than or equal to"), "it must be at least"),
    (re.compile(r"Input should be less than or equal to"), "it must be at most"),
    (re.compile(r"Input should be a valid integer.*"), "it must be a whole number"),
    (re.compile(r"Input should be a valid number.*"), "it must be a number"),
    (re.compile(r"^Value error, "), ""),
)
