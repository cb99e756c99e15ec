"""Questions as people keep them: JSON lines or CSV, with text or numbers as ids and answers."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from heedful.errors import MissingError, UsageError
from heedful.mismatch import mismatch
from heedful.types import Choice, Item, digest_of

Plain = str | int | float
_ANSWER_COLUMN = re.compile(r"answer[ _]?\d*", re.IGNORECASE)
_CHOICE_COLUMN = re.compile(r"[A-Z]")


class QuestionRow(msgspec.Struct, kw_only=True):
    """A line of a question file; `answer` may list several right answers."""

    id: str | int | None = None
    question: str
    answer: Plain | tuple[Plain, ...]
    choices: tuple[Choice, ...] = ()
    meta: dict[str, Any] = {}


def read_questions(file: Path) -> list[Item]:
    """The questions of a .jsonl or .csv file; a row without an id gets a digest of its question as id."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise MissingError(f"cannot read the question file {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    rows = _csv_rows(file, text) if file.suffix.lower() == ".csv" else _json_rows(file, text)
    items = [_item(file, number, row) for number, row in rows]
    if repeated := [id for id, count in Counter(item.id for item in items).items() if count > 1]:
        same = next(item.question for item in items if item.id == repeated[0])
        raise UsageError(
            f"{file} has the id {repeated[0]!r} more than once (question: {same[:60]!r}); give each question "
            "a unique id"
        )
    return items


def _json_rows(file: Path, text: str) -> Iterator[tuple[int, QuestionRow]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield number, msgspec.json.decode(line, type=QuestionRow)
            except msgspec.MsgspecError as error:
                raise UsageError(f"{file} line {number} is not a question: {mismatch(error)}") from error


def _csv_rows(file: Path, text: str) -> Iterator[tuple[int, QuestionRow]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        head = [name.strip() for name in reader.fieldnames or ()]
        reader.fieldnames = head
        if missing := {"question", "answer"} - {name.lower() for name in head}:
            raise UsageError(
                f"{file} has no column {' and no column '.join(sorted(missing))}: "
                "its first line must name the columns"
            )
        for fields in reader:
            if None in fields or None in fields.values():
                raise UsageError(
                    f"{file} line {reader.line_num} does not have {len(head)} cells as the first line has: "
                    'put a cell that contains a comma into "double quotes"'
                )
            yield reader.line_num, _csv_row({name: cell.strip() for name, cell in fields.items()})
    except csv.Error as error:
        raise UsageError(f"{file} line {reader.line_num} is not CSV: {error}") from error


def _csv_row(cells: Mapping[str, str]) -> QuestionRow:
    """Columns A, B, … are choices; answer, answer2, … are right answers; other columns are kept as meta."""
    by_name = {name.lower(): cell for name, cell in cells.items()}
    choices = {name: cell for name, cell in cells.items() if _CHOICE_COLUMN.fullmatch(name) and cell}
    answers = {name: cell for name, cell in cells.items() if _ANSWER_COLUMN.fullmatch(name)}
    used = {*choices, *answers}
    return QuestionRow(
        id=by_name.get("id") or None,
        question=by_name["question"],
        answer=tuple(cell for cell in answers.values() if cell),
        choices=tuple(Choice(label=label, text=text) for label, text in choices.items()),
        meta={
            name: cell
            for name, cell in cells.items()
            if name not in used and name.lower() not in ("id", "question")
        },
    )


def _item(file: Path, number: int, row: QuestionRow) -> Item:
    answers = row.answer if isinstance(row.answer, tuple) else (row.answer,)
    targets = [str(answer).strip() for answer in answers]
    if not row.question.strip():
        raise UsageError(f"{file} line {number} has an empty question")
    if not targets or not all(targets):
        raise UsageError(f"{file} line {number} has no answer, so no reply to it could be right")
    first, *also = targets
    return Item(
        id=digest_of(row.question)[:12] if row.id is None else str(row.id),
        question=row.question,
        answer=first,
        also=tuple(also),
        choices=row.choices,
        meta=row.meta,
    )
