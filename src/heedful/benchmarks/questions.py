"""The user's own questions: one JSONL file, or one per side."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.benchmarks.items import normal_question, read_items, with_choices
from heedful.benchmarks.metrics import metric_named
from heedful.errors import UsageError
from heedful.memory.entries import new_entry
from heedful.types import Entry, Item, Side, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnQuestions:
    """Rows of `id`, `question`, `answer` and optional `choices`, which are shown below the question.

    A single file is split in half into the two sides, by `seed`; rows with the same text stay together.
    """

    name: str
    fit: Path
    test: Path | None = None
    metric: str = "text"
    instructions: str = ""
    answer_pattern: str | None = None
    max_tokens: int = 64
    seed: int = 0
    folder: Path = Path()
    """The folder to search for the user's own metric."""

    def load(self, data: Path, side: Side) -> Sequence[Item]:
        if self.test is not None:
            return read_items(data / (self.fit if side == "fit" else self.test))
        items = read_items(data / self.fit)
        half = _half(items, self.seed)
        return [item for item in items if (item.id in half) == (side == "fit")]

    def task(self, item: Item) -> Task:
        return Task(
            id=item.id,
            question=with_choices(item),
            instructions=self.instructions,
            answer_pattern=self.answer_pattern,
            choices=tuple(choice.label for choice in item.choices),
            max_tokens=self.max_tokens,
        )

    def grade(self, answer: str, item: Item) -> bool:
        metric = metric_named(self.metric, self.folder)
        try:
            return bool(metric(answer, item.answer))
        except Exception as error:  # a metric may be the user's own code
            raise UsageError(f"the metric {self.metric} fails on the answer to {item.id}: {error}") from error

    def exemplar(self, item: Item) -> Entry | None:
        return new_entry(
            with_choices(item), kind="exemplar", response=item.answer, id=f"ex-{item.id}", source=self.name
        )


def _half(items: Sequence[Item], seed: int) -> set[str]:
    """The ids of half of the rows, drawn by seed; a repeated question is drawn with its first row."""
    copies: dict[str, list[Item]] = {}
    for item in random.Random(seed).sample(items, len(items)):
        copies.setdefault(normal_question(with_choices(item)), []).append(item)
    drawn: set[str] = set()
    for group in copies.values():
        if len(drawn) + len(group) <= len(items) // 2:
            drawn.update(item.id for item in group)
    return drawn
