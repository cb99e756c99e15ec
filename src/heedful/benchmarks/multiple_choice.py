"""Benchmarks whose answers are letters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.benchmarks.items import read_items, with_choices
from heedful.benchmarks.metrics import same_choice
from heedful.benchmarks.word_problems import DataFile
from heedful.memory.entries import new_entry
from heedful.types import Entry, Item, Side, Task

INSTRUCTIONS = 'Choose the best answer. Reply with "Answer:" and its letter only.'
"""It names no letter: with `like this: Answer: B` Qwen2.5-Coder-1.5B answered B to 15 of 24 questions."""
LETTER_ANSWER = r"(?:Answer:\s*|^\s*)\(?([A-E])\b"


@dataclass(frozen=True, slots=True, kw_only=True)
class MultipleChoice:
    """Questions with lettered answers; the train and dev rows form the fit side."""

    name: str
    files: Mapping[Side, tuple[DataFile, ...]]

    def load(self, data: Path, side: Side) -> Sequence[Item]:
        return [item for file in self.files[side] for item in read_items(data / file.path, file.sha256)]

    def task(self, item: Item) -> Task:
        return Task(
            id=item.id,
            question=with_choices(item),
            instructions=INSTRUCTIONS,
            answer_pattern=LETTER_ANSWER,
            choices=tuple(choice.label for choice in item.choices),
            max_tokens=16,
        )

    def grade(self, answer: str, item: Item) -> bool:
        return same_choice(answer, item.answer)

    def exemplar(self, item: Item) -> Entry | None:
        """The question with the letter of the right answer."""
        response = f"Answer: {item.answer}"
        return new_entry(with_choices(item), kind="exemplar", response=response, id=item.id, source=self.name)
