"""A person's own questions: one JSONL file, or one for each side."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.benchmarks.items import read_items
from heedful.benchmarks.metrics import metric_named
from heedful.memory.entries import new_entry
from heedful.types import Entry, Item, Side, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnQuestions:
    """Rows of `id`, `question`, `answer`; a single file is halved into the sides by `seed`."""

    name: str
    fit: Path
    test: Path | None = None
    metric: str = "text"
    instructions: str = ""
    answer_pattern: str | None = None
    max_tokens: int = 64
    seed: int = 0

    def load(self, data: Path, side: Side) -> Sequence[Item]:
        if self.test is not None:
            return read_items(data / (self.fit if side == "fit" else self.test))
        items = read_items(data / self.fit)
        order = random.Random(self.seed).sample(range(len(items)), len(items))
        half = set(order[: len(items) // 2])
        return [item for place, item in enumerate(items) if (place in half) == (side == "fit")]

    def task(self, item: Item) -> Task:
        return Task(
            id=item.id,
            question=item.question,
            instructions=self.instructions,
            answer_pattern=self.answer_pattern,
            choices=tuple(choice.label for choice in item.choices),
            max_tokens=self.max_tokens,
        )

    def grade(self, answer: str, item: Item) -> bool:
        return metric_named(self.metric)(answer, item.answer)

    def exemplar(self, item: Item) -> Entry | None:
        return new_entry(
            item.question, kind="exemplar", response=item.answer, id=f"ex-{item.id}", source=self.name
        )
