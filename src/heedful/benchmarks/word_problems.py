"""Benchmarks whose answers are numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.benchmarks.answer_patterns import NUMBER_WORDS
from heedful.benchmarks.items import read_items
from heedful.benchmarks.metrics import same_number
from heedful.memory.entries import new_entry
from heedful.types import Entry, Item, Side, Task

INSTRUCTIONS = (
    "Solve the math word problem. Write one short sentence of working, "
    'then a last line of the form "Answer: N", where N is a number.'
)
LAST_NUMBER = (
    r"(?:(?<![^\s(=:*$])[-−]\$?|\$)?"
    r"(?:\d+ \d+/\d+|(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+|\s?/\s?\d+)?|\.\d+)"
    rf"|(?i:(?<=answer: )(?:{'|'.join(NUMBER_WORDS)})\b)"
)
"""The last number in a text is the answer, with or without `Answer:` before it. Otherwise memory that teaches
the format would gain over a first pass with the same answer in other words. A number word (`seven`) counts
only after `Answer:`, because elsewhere `one` is rarely a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file in the data folder with its sha256."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WordProblems:
    """Word problems; the worked equation of a problem becomes its exemplar."""

    name: str
    files: Mapping[Side, DataFile]
    worked: Callable[[Item], str | None]
    """An item's solution as a line that ends in `Answer: N`; None if it has none."""
    belongs: Callable[[Item, Side], bool] = lambda item, side: True
    """Whether a row is on a side, for benchmarks with a single file."""
    instructions: str = INSTRUCTIONS
    max_tokens: int = 160

    def load(self, data: Path, side: Side) -> Sequence[Item]:
        if side not in self.files:
            return ()
        file = self.files[side]
        return [item for item in read_items(data / file.path, file.sha256) if self.belongs(item, side)]

    def task(self, item: Item) -> Task:
        return Task(
            id=item.id,
            question=item.question,
            instructions=self.instructions,
            answer_pattern=LAST_NUMBER,
            max_tokens=self.max_tokens,
        )

    def grade(self, answer: str, item: Item) -> bool:
        return same_number(answer, item.answer)

    def exemplar(self, item: Item) -> Entry | None:
        """The item as a worked example."""
        worked = self.worked(item)
        if worked is None:
            return None
        return new_entry(item.question, kind="exemplar", response=worked, id=item.id, source=self.name)


def worked_equation(equation: str, answer: str) -> str:
    """`( 76.0 - 25.0 )` and 51 as `76 - 25 = 51. Answer: 51`."""
    plain = equation.strip().removeprefix("X=").replace(".0", "").replace(" ", "")
    if plain.startswith("(") and plain.endswith(")") and _balanced(plain[1:-1]):
        plain = plain[1:-1]
    for sign in "+-*/":
        plain = plain.replace(sign, f" {sign} ")
    return f"{plain} = {answer}. Answer: {answer}"


def _balanced(text: str) -> bool:
    depth = 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return False
    return depth == 0
