"""`heedful ask --file`: answer many questions, several at a time; an interrupted run resumes."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import msgspec

from heedful.benchmarks.items import with_choices
from heedful.cli.output import progress, say
from heedful.control import Controller
from heedful.errors import HeedfulError, ModelError, UsageError
from heedful.protocol.workspace import read_json_lines
from heedful.types import Choice, Item, Outcome, Task, TaskTemplate

FAILURES_IN_A_ROW = 5
"""After this many failures in a row the endpoint is taken to be down."""
Summary = Callable[[Outcome], dict[str, object]]


class QuestionLine(msgspec.Struct):
    """A line of the file; other fields are ignored."""

    question: str
    id: str | int = ""
    choices: tuple[Choice, ...] = ()
    scope: dict[str, str] = {}


@dataclass(slots=True, kw_only=True)
class BatchCount:
    """What a run did."""

    answered: int = 0
    failed: int = 0
    known: int = 0
    in_a_row: int = 0
    """Failures since the last answer."""
    errors: list[str] = field(default_factory=list)


def read_tasks(file: Path, template: TaskTemplate, scope: Mapping[str, str]) -> list[Task]:
    """The tasks of a JSONL file; every id must be unique."""
    tasks: list[Task] = []
    lines: dict[str, int] = {}
    for number, row in read_json_lines(file, QuestionLine, "a question"):
        if not row.question.strip():
            raise UsageError(f"{file} line {number} has an empty question")
        item = Item(id=str(row.id), question=row.question, answer="", choices=row.choices)
        labels = tuple(choice.label for choice in row.choices)
        text = with_choices(item)
        task = template.task(text, id=item.id, choices=labels, scope={**scope, **row.scope})
        if task.id in lines:
            raise UsageError(
                f"{file} line {number} repeats line {lines[task.id]}: give every question an id of its own"
            )
        lines[task.id] = number
        tasks.append(task)
    if not tasks:
        raise UsageError(f"{file} has no questions: write one JSON object with a question per line")
    return tasks


def answered_ids(out: Path | None) -> set[str]:
    """The ids that an earlier run answered; failed ones and a line cut off by a kill do not count."""
    if out is None or not out.exists():
        return set()
    try:
        lines = out.read_bytes().split(b"\n")
    except OSError as error:
        raise UsageError(f"cannot read {out}: {error.strerror}") from error
    ids = set()
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and "answer" in row:
            ids.add(str(row.get("id")))
    return ids


async def ask_all(
    controller: Controller, tasks: Sequence[Task], out: Path | None, at_once: int, summary: Summary
) -> BatchCount:
    """Answer the tasks that are not answered yet; a line is written as soon as its answer is there."""
    known = answered_ids(out)
    waiting = iter([task for task in tasks if task.id not in known])
    count = BatchCount(known=sum(task.id in known for task in tasks))
    with lines_to(out) as write, asking_progress(len(tasks)) as show:

        async def worker() -> None:
            for task in waiting:
                write({"id": task.id, **await _answer(controller, task, count, summary)})
                show(count)

        workers = [asyncio.create_task(worker()) for _ in range(at_once)]
        try:
            await asyncio.gather(*workers)
        finally:
            for running in workers:
                running.cancel()
            await controller.model.aclose()
    return count


async def _answer(
    controller: Controller, task: Task, count: BatchCount, summary: Summary
) -> dict[str, object]:
    """The fields of an answer, or its error; one bad question does not stop the others."""
    try:
        outcome = await controller.answer(task)
    except ModelError as error:
        count.failed += 1
        count.in_a_row += 1
        if count.in_a_row >= FAILURES_IN_A_ROW:
            raise ModelError(
                f"{FAILURES_IN_A_ROW} questions failed in a row, the last one {task.id}: {error}; "
                "answers are kept, run the same command again"
            ) from error
        return {"question": task.question, "error": str(error)}
    except HeedfulError as error:
        raise type(error)(f"question {task.id}: {error}") from error
    count.in_a_row = 0
    count.answered += 1
    for fault in outcome.faults:
        say(f"heedful: {task.id}: survived a fault in {fault.stage}: {fault.error}")
    return {"question": task.question, **summary(outcome)}


@contextmanager
def lines_to(out: Path | None) -> Iterator[Callable[[Mapping[str, object]], None]]:
    """Yields a function that writes one JSON line: to standard output, or to the end of a file."""
    if out is None:
        yield lambda row: print(json.dumps(row, ensure_ascii=False), flush=True)
        return
    try:
        with out.open("ab") as file:
            if file.tell() and not _ends_with_newline(out):
                file.write(b"\n")
            yield lambda row: _append(file, row)
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror}") from error


def _append(file: IO[bytes], row: Mapping[str, object]) -> None:
    file.write(f"{json.dumps(row, ensure_ascii=False)}\n".encode())
    file.flush()


def _ends_with_newline(file: Path) -> bool:
    with file.open("rb") as stream:
        stream.seek(-1, 2)
        return stream.read(1) == b"\n"


@contextmanager
def asking_progress(total: int) -> Iterator[Callable[[BatchCount], None]]:
    """Yields a function that shows the progress: a bar on a terminal, ten lines elsewhere."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = progress()
    columns = (
        TextColumn("asking"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        row = bars.add_task("asking", total=total)
        told = [0]

        def show(count: BatchCount) -> None:
            done = count.known + count.answered + count.failed
            bars.update(row, completed=done)
            if not console.is_terminal and (done >= told[0] + max(1, total // 10) or done == total):
                told[0] = done
                failed = f", {count.failed} failed" if count.failed else ""
                say(f"asking: {done} of {total}{failed}")

        yield show
