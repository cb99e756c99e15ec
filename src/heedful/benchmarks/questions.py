"""The user's own questions: one file, or one per side."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.benchmarks.answer_patterns import Reading, answer_pattern
from heedful.benchmarks.items import normal_question, with_choices
from heedful.benchmarks.judge import Judge
from heedful.benchmarks.metrics import JUDGE, metric_named, numbers_in, read_number, usual_reading
from heedful.benchmarks.question_files import read_questions
from heedful.errors import UsageError
from heedful.memory.entries import new_entry
from heedful.types import Entry, Item, Side, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnQuestions:
    """Questions with one or several right answers and optional choices, which are shown below the question.

    A single file is split in half into the two sides, by `seed`; rows with the same text stay together.
    """

    name: str
    fit: Path
    test: Path | None = None
    metric: str = "text"
    instructions: str = ""
    answer: Reading | None = None
    """How the answer is found in a reply; None: as the metric needs it."""
    answer_pattern: str | None = None
    """A regular expression instead of `answer`."""
    max_tokens: int = 64
    seed: int = 0
    folder: Path = Path()
    """The folder to search for the user's own metric."""
    grader: Judge | None = None
    """The model that grades, for the metric `judge`."""

    def load(self, data: Path, side: Side) -> Sequence[Item]:
        if self.test is not None:
            return self._read(data / (self.fit if side == "fit" else self.test))
        items = self._read(data / self.fit)
        half = _half(items, self.seed)
        return [item for item in items if (item.id in half) == (side == "fit")]

    def _read(self, file: Path) -> list[Item]:
        items = read_questions(file)
        for item in items:
            self._refuse_bad_target(file, item)
        return items

    def _refuse_bad_target(self, file: Path, item: Item) -> None:
        """Refuse a target that no answer could match, or that the metric would misread."""
        for target in item.targets:
            if self.metric == "number" and (read_number(target) is None or len(numbers_in(target)) > 1):
                raise UsageError(
                    f"{file}: the answer {target!r} to {item.id} is not one number, which the metric number "
                    "needs; write the number alone, or choose another metric"
                )
            labels = [choice.label for choice in item.choices]
            if self.metric == "choice" and labels and target not in labels:
                raise UsageError(
                    f"{file}: the answer {target!r} to {item.id} is not the label of a choice "
                    f"({', '.join(labels)}), which the metric choice needs"
                )

    def task(self, item: Item) -> Task:
        labels = tuple(choice.label for choice in item.choices)
        return Task(
            id=item.id,
            question=with_choices(item),
            instructions=self.instructions,
            answer_pattern=self.answer_pattern or answer_pattern(self.reading, labels),
            choices=labels,
            max_tokens=self.max_tokens,
        )

    @property
    def reading(self) -> Reading:
        """How the answer is found in a reply, unless there is a pattern."""
        return self.answer or usual_reading(self.metric)

    async def judge(self, answer: str, item: Item) -> None:
        """Have the judge grade an answer, if there is one; `grade` then knows its verdict."""
        if self.grader is not None:
            await self.grader.judge(answer, item)

    def grade(self, answer: str, item: Item) -> bool:
        if self.metric == JUDGE:
            return bool(answer) and self.grader is not None and self.grader.verdict(answer, item)
        metric = metric_named(self.metric, self.folder)
        try:
            return any(bool(metric(answer, target)) for target in item.targets)
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
