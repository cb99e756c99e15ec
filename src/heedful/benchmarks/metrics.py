"""When an answer is right: each metric compares what a model answered with the target."""

import importlib
import inspect
import json
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType

from heedful.errors import UsageError

Metric = Callable[[str, str], bool]

_NUMBER = re.compile(
    r"(?P<sign>[-−]?)\s*[$€£]?\s*"
    r"(?:(?P<whole>\d+)\s+(?P<mixed>\d+\s*/\s*\d+)|(?P<ratio>\d+\s*/\s*\d+)"
    r"|(?P<decimal>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+))"
)
_SMALL = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
_WORDS = {word: Fraction(value) for value, word in enumerate(_SMALL.split())}


def read_number(text: str) -> Fraction | None:
    """The first number of an answer: 1,250 · $3.50 · 3/4 · 1 1/2 · seven · 12 apples."""
    match = _NUMBER.search(text)
    if match is None:
        return next(
            (Fraction(_WORDS[w]) for w in re.findall(r"[a-z]+", text.casefold()) if w in _WORDS), None
        )
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
    """Equal, or equal after rounding to the target's digits when the target is a rounded decimal."""
    found, wanted = read_number(answer), read_number(target)
    if found is None or wanted is None:
        return False
    digits = len(target.partition(".")[2])
    return found == wanted or (digits > 0 and round(found, digits) == wanted)


def same_choice(answer: str, target: str) -> bool:
    """The same letter, whatever stands around it."""
    letter = re.search(r"(?<![A-Za-z])([A-Za-z])(?![A-Za-z])", answer)
    return letter is not None and letter[1].upper() == target.strip().upper()


def exactly(answer: str, target: str) -> bool:
    return answer == target


def same_text(answer: str, target: str) -> bool:
    """Equal but for case, punctuation, articles and spaces."""
    return _normal(answer) == _normal(target)


def contains_text(answer: str, target: str) -> bool:
    """The target stands in the answer as whole words."""
    return f" {_normal(target)} " in f" {_normal(answer)} "


def _normal(text: str) -> str:
    words = re.sub(r"[^\w\s]", " ", text.casefold()).split()
    return " ".join(word for word in words if word not in ("a", "an", "the"))


def json_path(path: str) -> Metric:
    """The value at a dotted path of a JSON answer equals the target."""

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


def metric_named(name: str) -> Metric:
    """A metric by name, `json:PATH`, or `python:MODULE:FUNCTION` of the user's own."""
    if name in METRICS:
        return METRICS[name]
    if name.startswith("json:"):
        return json_path(name.removeprefix("json:"))
    if name.startswith("python:"):
        return _own(name.removeprefix("python:"))
    raise UsageError(
        f"there is no metric {name!r}; choose {', '.join(METRICS)}, json:PATH or python:MODULE:FUNCTION"
    )


def metric_source(name: str) -> str:
    """The code around a metric of the user's own; empty for heedful's, and where it cannot be read."""
    if not name.startswith("python:"):
        return ""
    try:
        return inspect.getsource(inspect.getmodule(metric_named(name)) or metric_named(name))
    except (OSError, TypeError):
        return ""


def _own(place: str) -> Metric:
    module, _, function = place.partition(":")
    try:
        metric: Metric = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"the metric python:{place} does not load: {error}") from error
    return metric
