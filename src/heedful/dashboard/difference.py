"""Mark where two answers differ, word by word."""

import re
from difflib import SequenceMatcher

from heedful.dashboard.markup import Markup, element, join

MOST_WORDS = 2_000
"""Longer texts are shown without marks: comparing them takes quadratic time."""


def marked_difference(before: str, after: str) -> tuple[Markup, Markup]:
    """Both texts, with the words marked that the other one lacks."""
    old, new = _words(before), _words(after)
    if max(len(old), len(new)) > MOST_WORDS:
        return join([before]), join([after])
    left: list[str | Markup] = []
    right: list[str | Markup] = []
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        removed, added = "".join(old[i1:i2]), "".join(new[j1:j2])
        left.append(removed if kind == "equal" or not removed else element("mark", removed))
        right.append(added if kind == "equal" or not added else element("mark", added))
    return join(left), join(right)


def _words(text: str) -> list[str]:
    return re.findall(r"\s+|\w+|[^\w\s]", text)
