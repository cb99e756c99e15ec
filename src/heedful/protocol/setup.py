"""The setup of a study: benchmark, rows, banks and sources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from heedful.benchmarks import BENCHMARKS
from heedful.benchmarks.items import data_folder, statement
from heedful.benchmarks.judge import Judge
from heedful.benchmarks.questions import OwnQuestions
from heedful.errors import LeakError, UsageError
from heedful.memory.bank import MemoryBank
from heedful.memory.entries import new_entry
from heedful.memory.formats import read_entries
from heedful.ports import Bank, Benchmark, Source
from heedful.protocol.splits import Splits, split
from heedful.protocol.study import JudgeSettings, SourceSettings, Study, read_study
from heedful.protocol.study_model import study_model
from heedful.protocol.workspace import read_json_lines
from heedful.sources import RetrySource
from heedful.sources.kinds import SOURCES, SourceOptions
from heedful.types import Entry, Side, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySetup:
    """Everything a study works with, except the model."""

    study: Study
    folder: Path
    """The folder of the study file; paths of banks and questions are relative to it."""
    benchmark: Benchmark
    splits: Splits
    banks: Mapping[str, MemoryBank]
    dropped: Mapping[str, Sequence[str]]
    """Per bank, the ids of entries left out because their question is asked."""

    def sources(self, side: Side, seed: int) -> dict[str, Source]:
        """The sources recorded on a side, `none` first."""
        named: dict[str, Source] = {"none": RetrySource()}
        for name, settings in self.study.sources.items():
            if side in settings.sides:
                named[name] = make_source(settings, self.banks.get(name), seed)
        return named

    def tasks(self) -> list[Task]:
        """The tasks of both sides."""
        return [self.benchmark.task(item) for item in (*self.splits.fit, *self.splits.test)]


def make_source(settings: SourceSettings, bank: Bank | None, seed: int) -> Source:
    """The source that a study file describes."""
    return SOURCES.make(
        settings.kind,
        SourceOptions(
            bank=bank,
            placement=settings.placement,
            limit=settings.limit,
            heading=settings.heading,
            temperature=settings.temperature,
            seed=seed,
            sample=settings.sample,
            options=settings.options,
        ),
        Source,
    )


def prepare(file: Path, data: Path | None) -> StudySetup:
    """Read a study file, draw its rows and build its banks without data from the test side."""
    study = read_study(file)
    folder = file.parent
    benchmark = _benchmark(study, folder)
    splits = split(benchmark, folder if study.questions else data_folder(data), study.split)
    if study.questions:  # published benchmarks are used with the sides that their authors made
        splits.refuse_shared_questions()
    banks, dropped = {}, {}
    for name, settings in study.sources.items():
        if settings.bank:
            entries = _entries(settings, folder, benchmark, splits)
            kept = splits.unasked(entries)
            left_out = [entry.id for entry in entries if entry not in kept]
            if settings.bank != "pool" and left_out:
                raise LeakError(
                    f"the bank {settings.bank} contains questions of the fit or the test side "
                    f"({', '.join(left_out)}): remove these entries"
                )
            banks[name] = MemoryBank(name, kept, method=settings.recall, threshold=settings.threshold)
            dropped[name] = left_out
    return StudySetup(
        study=study, folder=folder, benchmark=benchmark, splits=splits, banks=banks, dropped=dropped
    )


def _benchmark(study: Study, folder: Path) -> Benchmark:
    own = study.questions
    if own is None:
        if study.benchmark not in BENCHMARKS:
            raise UsageError(f"there is no benchmark {study.benchmark!r}; choose {', '.join(BENCHMARKS)}")
        return BENCHMARKS[study.benchmark]
    return OwnQuestions(
        name=study.name,
        fit=Path(own.file or own.fit),
        test=Path(own.test) if own.test else None,
        metric=own.metric,
        instructions=own.instructions,
        answer=own.answer,
        answer_pattern=own.answer_pattern,
        max_tokens=own.max_tokens,
        seed=study.split.seed,
        folder=folder,
        grader=None if own.judge is None else _judge(own.judge, folder),
    )


def _judge(settings: JudgeSettings, folder: Path) -> Judge:
    return Judge(
        model=study_model(settings),
        cache=folder / "judge.jsonl",
        instructions=settings.instructions,
        max_tokens=settings.max_tokens,
    )


def _entries(settings: SourceSettings, folder: Path, benchmark: Benchmark, splits: Splits) -> Sequence[Entry]:
    if settings.bank_file:
        return read_entries(folder / settings.bank_file, kind=settings.entry_kind)[0]
    if settings.entry_kind == "fact":
        return [new_entry(statement(item), kind="fact", id=f"fact-{item.id}") for item in splits.pool]
    exemplars = [(item.id, benchmark.exemplar(item)) for item in splits.pool]
    if not settings.responses:
        return [entry for _, entry in exemplars if entry is not None]
    worked = read_responses(folder / settings.responses)
    return [
        replace(entry, response=worked[id]) for id, entry in exemplars if entry is not None and id in worked
    ]


class WorkedAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """The worked answer to a row, without the row's text."""

    id: str
    response: str


def read_responses(file: Path) -> dict[str, str]:
    """Worked answers by row from a JSONL file."""
    return {row.id: row.response for _, row in read_json_lines(file, WorkedAnswer, "a worked answer")}
