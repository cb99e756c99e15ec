"""How often a judge errs, measured on answers that a person graded."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from heedful.benchmarks.questions import OwnQuestions
from heedful.errors import UsageError
from heedful.protocol.setup import StudySetup
from heedful.protocol.workspace import read_json_lines
from heedful.stats.intervals import Interval, wilson
from heedful.types import Item


class GradedAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """An answer to a question of the study, graded by a person."""

    id: str
    answer: str
    right: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeError:
    """An answer on which judge and person differ."""

    id: str
    answer: str
    right: bool
    """By the person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCheck:
    n: int
    agreement: Interval
    false_right: Interval | None
    """Of the wrong answers, the share that the judge calls right; None: the sample has none."""
    false_wrong: Interval | None
    """Of the right answers, the share that the judge calls wrong; None: the sample has none."""
    unclear: int
    """Replies that were neither yes nor no; they count as wrong."""
    errors: tuple[JudgeError, ...]


async def check_judge(setup: StudySetup, sample: Path) -> JudgeCheck:
    """Judge every answer of the sample and compare with the person's grades."""
    if not isinstance(setup.benchmark, OwnQuestions) or setup.benchmark.grader is None:
        raise UsageError('the study has no judge: set metric = "judge" and [questions.judge]')
    grader, items = setup.benchmark.grader, _items(setup)
    rows = [row for _, row in read_json_lines(sample, GradedAnswer, "a graded answer")]
    if not rows:
        raise UsageError(f"{sample} has no graded answers: write lines with id, answer and right")
    if unknown := [row.id for row in rows if row.id not in items]:
        raise UsageError(f"{sample} has the id {unknown[0]!r}, which is not a question of the study")
    verdicts = [await grader.judge(row.answer, items[row.id]) for row in rows]
    return _compared(rows, verdicts)


def _items(setup: StudySetup) -> dict[str, Item]:
    return {item.id: item for items in setup.splits.parts.values() for item in items}


def _compared(rows: Sequence[GradedAnswer], verdicts: Sequence[bool | None]) -> JudgeCheck:
    said = [bool(verdict) for verdict in verdicts]
    pairs = list(zip(rows, said, strict=True))
    return JudgeCheck(
        n=len(rows),
        agreement=_share([row.right == verdict for row, verdict in pairs]),
        false_right=_share_or_none([verdict for row, verdict in pairs if not row.right]),
        false_wrong=_share_or_none([not verdict for row, verdict in pairs if row.right]),
        unclear=sum(verdict is None for verdict in verdicts),
        errors=tuple(
            JudgeError(id=row.id, answer=row.answer, right=row.right)
            for row, verdict in pairs
            if row.right != verdict
        ),
    )


def _share_or_none(outcomes: Sequence[bool]) -> Interval | None:
    return _share(outcomes) if outcomes else None


def _share(outcomes: Sequence[bool]) -> Interval:
    hits, n = sum(outcomes), len(outcomes)
    low, high = wilson(hits, n)
    return Interval(low=low, high=high, value=hits / n, n=n)
