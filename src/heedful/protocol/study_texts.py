"""The texts of a study that its ledger leaves out: questions, targets and entries."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import HeedfulError
from heedful.ports import Benchmark
from heedful.protocol.setup import StudySetup, prepare
from heedful.protocol.study import read_study
from heedful.protocol.workspace import Workspace
from heedful.types import Entry, Item


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyTexts:
    benchmark: Benchmark
    items: Mapping[str, Item]
    """The asked questions of both sides, by id."""
    entries: Mapping[str, Mapping[str, Entry]]
    """By source and id."""


def texts_of(setup: StudySetup) -> StudyTexts:
    return StudyTexts(
        benchmark=setup.benchmark,
        items={item.id: item for item in (*setup.splits.fit, *setup.splits.test)},
        entries={name: {entry.id: entry for entry in bank.entries()} for name, bank in setup.banks.items()},
    )


def read_own_texts(space: Workspace) -> StudyTexts | None:
    """The texts of a study of the user's own questions, from its folder; None if they are not there.

    A benchmark's texts are not in the folder, so they never enter its report.
    """
    try:
        own = space.study.exists() and read_study(space.study).questions is not None
        return texts_of(prepare(space.study, None)) if own else None
    except HeedfulError:  # a report needs ledger and lock only
        return None


def read_texts(space: Workspace, data: Path | None) -> StudyTexts | None:
    """The texts of any study; None if the benchmark's data are not there."""
    try:
        return texts_of(prepare(space.study, data))
    except HeedfulError:
        return None
