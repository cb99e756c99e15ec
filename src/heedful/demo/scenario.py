"""The demo's fixed scenario: a made-up company's bank, questions with their right answers, one policy."""

import re
from importlib.resources import as_file, files
from typing import Literal

import msgspec

from heedful import arms
from heedful.memory.bank import MemoryBank
from heedful.memory.formats import read_entries
from heedful.sources.memory import MemorySource
from heedful.types import Entry, Task

Split = Literal["show", "practice"]
Needs = Literal["memory", "none", "trap"]

SOURCE = "demo"
INSTRUCTIONS = "Answer the question in one short, complete sentence."
MAX_TOKENS = 20
LIMIT = 3

# Loose on purpose, so that entries which do not fit reach the prompt and their harm can be seen. With a
# strict one (0.6, the default of a bank) they stay out, and always-retrieve is two answers ahead of heedful.
RECALL_THRESHOLD = 0.3

# Chosen on the 30 practice questions only and frozen before the 60 show questions were asked. The rule
# was set beforehand: the paper's signal unless another gets two more right; among thresholds from -1 to
# -0.2 and margins from 0 to 0.3 most right, then fewest hurts, then the smallest margin, then the middle
# of the thresholds left (-0.4 to -0.2). Margin 0: a second answer must be at least as sure as the first.
# Instructions and recall were compared on the practice questions and on 90 earlier ones, since replaced.
POLICY = arms.choose(SOURCE, threshold=-0.3, margin=0.0, signal="mean")


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question of the demo with the answers that count as right."""

    id: str
    split: Split
    question: str
    right: tuple[str, ...]
    needs: Needs
    """What a right answer takes: the bank, nothing, or care because the bank also misleads."""
    wrong: tuple[str, ...] = ()
    """What makes an answer wrong even where it also names a right one."""

    @property
    def task(self) -> Task:
        return Task(id=self.id, question=self.question, instructions=INSTRUCTIONS, max_tokens=MAX_TOKENS)


def entries() -> list[Entry]:
    """The bank of the demo; entries tagged stale, contradictory or harmful are there on purpose."""
    with as_file(files(__package__) / "bank.jsonl") as file:
        return read_entries(file)[0]


def questions(split: Split) -> list[Question]:
    lines = (files(__package__) / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    read = [msgspec.json.decode(line, type=Question) for line in lines]
    return [question for question in read if question.split == split]


def source() -> MemorySource:
    """Recall by meaning, notes after the question; MiniLM is loaded at the first recall."""
    bank = MemoryBank(SOURCE, entries(), method="dense", threshold=RECALL_THRESHOLD)
    return MemorySource(bank=bank, placement="after", limit=LIMIT)


def is_right(question: Question, answer: str) -> bool:
    """Whether the answer names a right alternative and no wrong one, as whole words in any case."""
    return _names(question.right, answer) and not _names(question.wrong, answer)


def _names(aliases: tuple[str, ...], answer: str) -> bool:
    return any(re.search(_WHOLE.format(re.escape(alias)), answer, re.IGNORECASE) for alias in aliases)


_WHOLE = r"(?<!\w)(?<!\d[.,:]){}(?!\w)(?![.,:]\d)"
"""A whole word or number: 7 is not in 7,000, in 7.5 or in 7:30."""
