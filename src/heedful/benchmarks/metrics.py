"""Metrics: each compares an answer with a target."""

import importlib
import importlib.util
import inspect
import json
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import MappingProxyType, ModuleType

from heedful.benchmarks.answer_patterns import FINAL_NUMBER, NUMBER, NUMBER_WORDS, Reading
from heedful.errors import UsageError

Metric = Callable[[str, str], bool]

_FINAL = re.compile(FINAL_NUMBER)
_PARTS = re.compile(r"(?P<sign>[-−]?)[$€£]?(?:(?P<whole>\d+) )?(?P<number>[\d.,]+(?:\s?/\s?\d+)?)")


def read_number(text: str) -> Fraction | None:
    """The final number of an answer: 1,250 · $3.50 · 3/4 · 1 1/2 · seven · 5 + 7 = 12 apples."""
    match = None
    for match in _FINAL.finditer(text):  # noqa: B007 - the last match counts
        pass
    return None if match is None else _value(match["answer"])


def numbers_in(text: str) -> list[Fraction]:
    """Every number that is written in digits."""
    values = (_value(match[0]) for match in re.finditer(NUMBER, text))
    return [value for value in values if value is not None]


def _value(written: str) -> Fraction | None:
    parts = _PARTS.fullmatch(written)
    if parts is None:
        return Fraction(NUMBER_WORDS[written.casefold()])
    try:
        number = Fraction(re.sub(r"[\s,]", "", parts["number"])) + int(parts["whole"] or 0)
    except ZeroDivisionError:
        return None
    return -number if parts["sign"] else number


def same_number(answer: str, target: str) -> bool:
    """Equal, or equal after rounding to the target's digits if the target is a decimal."""
    number, expected = read_number(answer), read_number(target)
    if number is None or expected is None:
        return False
    digits = len(target.partition(".")[2])
    return number == expected or (digits > 0 and round(number, digits) == expected)


def same_choice(answer: str, target: str) -> bool:
    """The same label, or the same letter regardless of the text around it."""
    if answer.strip().casefold() == target.strip().casefold():
        return bool(answer.strip())
    letter = re.search(r"(?<![A-Za-z])([A-Za-z])(?![A-Za-z])", answer)
    return letter is not None and letter[1].upper() == target.strip().upper()


def exactly(answer: str, target: str) -> bool:
    return answer == target


def same_text(answer: str, target: str) -> bool:
    """Equal up to case, punctuation, articles and spaces."""
    return _normal(answer) == _normal(target)


def contains_text(answer: str, target: str) -> bool:
    """The answer contains the target as whole words."""
    return f" {_normal(target)} " in f" {_normal(answer)} "


def _normal(text: str) -> str:
    words = re.sub(r"[^\w\s]", " ", text.casefold()).split()
    left = " ".join(word for word in words if word not in ("a", "an", "the"))
    return left or " ".join(text.casefold().split())  # an answer such as `A` or `+` is not nothing


def json_path(path: str) -> Metric:
    """The value at a dotted path in a JSON answer equals the target."""

    def same_value(answer: str, target: str) -> bool:
        try:
            value = json.loads(answer)
            for key in path.split("."):
                value = value[int(key)] if isinstance(value, list) else value[key]
        except (ValueError, KeyError, IndexError, TypeError):
            return False
        return same_text(value if isinstance(value, str) else json.dumps(value), target)

    return same_value


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        "number": same_number,
        "choice": same_choice,
        "exact": exactly,
        "text": same_text,
        "contains": contains_text,
    }
)
JUDGE = "judge"
"""The metric that asks a model; it needs `[questions.judge]`."""
_READINGS: Mapping[str, Reading] = MappingProxyType(
    {"number": "number", "choice": "choice", "exact": "marked", "text": "marked"}
)


def usual_reading(metric: str) -> Reading:
    """How the answer is found if a study does not say: what a metric compares is at the end of a reply."""
    return _READINGS.get(metric, "whole")


def mentions(reply: str, target: str, metric: str) -> bool:
    """Whether a reply contains the target anywhere, however the metric grades it."""
    if metric == "number":
        return read_number(target) in numbers_in(reply)
    return bool(_normal(target)) and contains_text(reply, target)


def metric_named(name: str, folder: Path = Path()) -> Metric:
    """A metric by name, `json:PATH`, or the user's own `python:MODULE:FUNCTION`.

    MODULE is a file in the folder (`MODULE.py`), or any module that Python can import.
    """
    if name in METRICS:
        return METRICS[name]
    if name.startswith("json:"):
        return json_path(name.removeprefix("json:"))
    if name.startswith("python:"):
        return _own(name.removeprefix("python:"), folder)
    raise UsageError(
        f"unknown metric {name!r}; choose {', '.join(METRICS)}, judge, json:PATH or python:MODULE:FUNCTION"
    )


def metric_file(name: str) -> str:
    """The file next to the study that may contain the user's own metric; empty for built-in metrics."""
    return f"{name.split(':')[1]}.py" if name.startswith("python:") else ""


def metric_source(name: str, folder: Path = Path()) -> str:
    """The source file of the user's own metric; empty for built-in metrics, or if it is unreadable."""
    if not name.startswith("python:"):
        return ""
    try:
        return Path(inspect.getsourcefile(metric_named(name, folder)) or "").read_text(encoding="utf-8")
    except (OSError, TypeError):
        return ""


@cache
def _own(place: str, folder: Path) -> Metric:
    module, _, function = place.partition(":")
    try:
        metric: Metric = getattr(_module(module, folder), function)
    except Exception as error:  # the module is the user's own code and may raise anything
        raise UsageError(f"cannot load the metric python:{place}: {error}") from error
    return metric


def _module(name: str, folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    if spec is None or spec.loader is None or not (folder / f"{name}.py").is_file():
        return importlib.import_module(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
