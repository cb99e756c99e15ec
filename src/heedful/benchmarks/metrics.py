"""Metrics: each compares an answer with the target."""

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

from heedful.errors import UsageError

Metric = Callable[[str, str], bool]

_NUMBER = re.compile(
    r"(?P<sign>[-−]?)\s*[$€£]?\s*"
    r"(?:(?P<whole>\d+)\s+(?P<mixed>\d+\s*/\s*\d+)|(?P<ratio>\d+\s*/\s*\d+)"
    r"|(?P<decimal>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+))"
)
_SMALL = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
NUMBER_WORDS = {word: Fraction(value) for value, word in enumerate(_SMALL.split())}


def read_number(text: str) -> Fraction | None:
    """The first number in an answer: 1,250 · $3.50 · 3/4 · 1 1/2 · seven · 12 apples."""
    match = _NUMBER.search(text)
    if match is None:
        words = re.findall(r"[a-z]+", text.casefold())
        return next((NUMBER_WORDS[word] for word in words if word in NUMBER_WORDS), None)
    sign = -1 if match["sign"] else 1
    try:
        if match["mixed"]:
            return sign * (Fraction(match["whole"]) + Fraction(match["mixed"].replace(" ", "")))
        if match["ratio"]:
            return sign * Fraction(match["ratio"].replace(" ", ""))
    except ZeroDivisionError:
        return None
    return sign * Fraction(match["decimal"].replace(",", ""))


def same_number(answer: str, target: str) -> bool:
    """Equal, or equal after rounding to the target's digits if the target is a decimal."""
    number, expected = read_number(answer), read_number(target)
    if number is None or expected is None:
        return False
    digits = len(target.partition(".")[2])
    return number == expected or (digits > 0 and round(number, digits) == expected)


def same_choice(answer: str, target: str) -> bool:
    """The same letter, regardless of the text around it."""
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
    return " ".join(word for word in words if word not in ("a", "an", "the"))


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
        f"unknown metric {name!r}; choose {', '.join(METRICS)}, json:PATH or python:MODULE:FUNCTION"
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
