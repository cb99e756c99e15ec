"""How the answer is found in a reply: named patterns for `[questions] answer`."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

Reading = Literal["whole", "marked", "number", "choice", "last-line"]
"""The ways to find an answer, by name."""

_SMALL = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
NUMBER_WORDS: Mapping[str, int] = MappingProxyType({word: n for n, word in enumerate(_SMALL.split())})
_WORD = rf"(?i:\b(?:{'|'.join(NUMBER_WORDS)})\b)"
NUMBER = (
    r"(?:(?<![^\s(=:*$€£{])[-−][$€£]?|[$€£])?"
    r"(?:\d+ \d+\s?/\s?\d+|(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+|\s?/\s?\d+)?|\.\d+)"
)
"""A number as people write it; a minus counts if it touches the number and nothing is before it."""
_COLON = r"\b(?i:answer)\**\s*[:=]\**"
MARK = rf"(?:{_COLON}|\b(?i:answer)\**\s+(?i:is)\b\s*:?|####|\\boxed\{{)"
"""What announces a final number: `Answer:`, `the answer is`, `####` or a LaTeX box."""

FINAL_NUMBER = (
    rf"(?:(?P<marked>{MARK}\s*(?:[^\n]*=)?[^\d\n]{{0,60}}?)"
    rf"|(?P<wordy>\A(?![\s\S]*(?:\d|{MARK}))[\s\S]*))?"
    rf"(?P<answer>(?(marked)(?:{NUMBER}|{_WORD})|(?(wordy){_WORD}|{NUMBER})))"
    rf"(?(marked)(?:(?!{MARK})[\s\S])*)"
)
"""The number after the last mark (the result, if an equation follows it), else the last number of the reply.
A number word (`seven`) counts after a mark, or in a reply without digits."""
MARKED = rf"\A(?P<marked>[\s\S]*{_COLON}\s*)?(?P<answer>(?(marked)[^\n]+|[\s\S]+))"
LAST_LINE = r"[^\n]*\S[^\n]*"


def choice_pattern(labels: tuple[str, ...]) -> str:
    """The label after `Answer:` or `option is`, else one that opens the reply, else the last `(X)` or `*X*`.

    An opening `A` or `I` before a space is a word, not a label.
    """
    label = "|".join(re.escape(label) for label in labels) or "[A-Z]"
    marked = rf"(?:{_COLON}|\b(?i:answer|option|choice)\s+(?i:is)\b\s*:?)\s*(?i:option\s+|choice\s+)?[*(]*"
    ends = r"(?=[).:,*]|\s*\Z|(?<![AaIi])\s)"
    return (
        rf"(?:(?P<marked>{marked})|(?P<opening>\A\s*[*(]*)|[(*]+)"
        rf"(?P<answer>(?i:{label}))(?!\w)(?(opening){ends})(?(marked)[^\n]*)"
    )


def answer_pattern(reading: Reading, labels: tuple[str, ...] = ()) -> str | None:
    """The pattern of a reading; None: the whole reply."""
    if reading == "choice":
        return choice_pattern(labels)
    return {"whole": None, "marked": MARKED, "number": FINAL_NUMBER, "last-line": LAST_LINE}[reading]
