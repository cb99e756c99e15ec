"""The folder of a study: its file, ledger, fit, lock, event log and report."""

import asyncio
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from heedful.benchmarks.metrics import metric_file
from heedful.benchmarks.question_files import read_questions
from heedful.errors import MissingError, StoreError, UsageError
from heedful.memory.formats import read_entries, write_entries
from heedful.memory.storage import default_place, exists, open_storage
from heedful.mismatch import mismatch
from heedful.protocol.idle_settings import refuse_idle_settings
from heedful.protocol.study import STORE, SourceSettings, Study, read_study

T = TypeVar("T")
REFINED = "# The bank of a source was refined by heedful; this file is not the one it was copied from."
"""The first line of a study file that `heedful study refine` changed."""


@dataclass(frozen=True, slots=True)
class Workspace:
    folder: Path

    @property
    def study(self) -> Path:
        return self.folder / "study.toml"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.jsonl"

    @property
    def fit(self) -> Path:
        return self.folder / "fit.json"

    @property
    def lock(self) -> Path:
        return self.folder / "lock.json"

    @property
    def fitted(self) -> bool:
        """Whether a policy was chosen; a lock holds the fit, so a packed study has no fit.json."""
        return self.fit.exists() or self.lock.exists()

    @property
    def clusters(self) -> Path:
        return self.folder / "clusters.json"

    @property
    def crossfit(self) -> Path:
        return self.folder / "crossfit.json"

    @property
    def speed(self) -> Path:
        """The speed of a running recording."""
        return self.folder / "recording.json"

    @property
    def events(self) -> Path:
        """The event log; a study that has one under its earlier name, journal.jsonl, keeps it."""
        earlier = self.folder / "journal.jsonl"
        return earlier if earlier.exists() else self.folder / "events.jsonl"

    @property
    def looked_at(self) -> Path:
        """The file that lists the fit rows used to refine a bank of the study."""
        return self.folder / "refine" / "looked-at.json"


def open_workspace(place: Path, out: Path | None) -> Workspace:
    """The folder of a study, given its file or its folder.

    A study file is copied into its folder together with its banks and questions, so the folder is
    self-contained.
    """
    if place.is_dir():
        if not (place / "study.toml").is_file():
            raise UsageError(f"{place} is not a study folder: it has no study.toml")
        space = Workspace(place)
        if not space.lock.exists():
            refuse_idle_settings(read_study(space.study), space.study)
        return space
    study = read_study(place)
    space = Workspace(out if out is not None else Path("results") / study.name)
    if space.study.exists() and space.study.resolve() == place.resolve():
        return space
    if space.lock.exists():
        _refuse_other(study, place, space)
        return space
    if space.study.exists() and space.study.read_text(encoding="utf-8").startswith(REFINED):
        raise UsageError(f"the study in {space.folder} has been refined: give the folder instead of {place}")
    refuse_idle_settings(study, place)
    _refuse_unreadable(study, place.parent)
    _refuse_wrong_reuse(study, place, space)
    _copy(study, place, space)
    return space


def _refuse_other(study: Study, place: Path, space: Workspace) -> None:
    """A locked folder cannot change: the study file and the files it names must be those that were locked."""
    if not space.study.exists() or space.study.read_bytes() != place.read_bytes():
        raise UsageError(
            f"{space.folder} holds a different locked study; choose another folder with --out, or remove it"
        )
    for name in _files(study, place.parent):
        given, locked = place.parent / name, space.folder / name
        if given.exists() and locked.exists() and given.read_bytes() != locked.read_bytes():
            raise UsageError(
                f"{given} differs from the file that was locked in {space.folder}: give that folder to "
                "continue its study, or choose another folder with --out"
            )


def _refuse_unreadable(study: Study, folder: Path) -> None:
    """Read the named files where the user wrote them, so that an error names that file and not its copy."""
    own = study.questions
    for name in () if own is None else (own.file, own.fit, own.test):
        if name and (folder / name).exists():
            read_questions(folder / name)
    for source in study.sources.values():
        if source.bank not in ("", "pool") and (folder / source.bank).exists():
            read_entries(folder / source.bank)


def _refuse_wrong_reuse(study: Study, place: Path, space: Workspace) -> None:
    """Find a wrong `reuse` before the study's folder is made."""
    reused = Path(os.path.normpath(space.folder / study.reuse))
    if study.reuse and not (reused / "study.toml").is_file():
        raise UsageError(f"{place}: reuse is {study.reuse!r}, but {reused} is not a study folder: correct it")


def _copy(study: Study, place: Path, space: Workspace) -> None:
    try:
        space.folder.mkdir(parents=True, exist_ok=True)
        for name in _files(study, place.parent):
            target = space.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if not (target.exists() and target.samefile(place.parent / name)):
                shutil.copyfile(place.parent / name, target)
        for source in study.sources.values():
            if source.bank.startswith(STORE):
                _copy_from_store(source, space)
        shutil.copyfile(place, space.study)
    except FileNotFoundError as error:
        raise MissingError(f"{error.filename}, named in {place}, does not exist") from error
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be copied to {space.folder}: {error.strerror}") from error


def _copy_from_store(source: SourceSettings, space: Workspace) -> None:
    """Write a bank of the store to the study's folder, so that the folder is self-contained."""
    name = source.bank.removeprefix(STORE)
    entries = asyncio.run(open_storage().entries(name)) if exists(default_place()) else []
    if not entries:
        raise UsageError(
            f"the store has no bank {name!r}; heedful bank ls lists its banks, and "
            f"heedful bank import FILE --bank {name} creates it"
        )
    write_text(space.folder / source.bank_file, write_entries(entries, "jsonl"))


def _files(study: Study, folder: Path) -> list[str]:
    """The files that a study file names, relative to its folder."""
    own = study.questions
    banks = {source.bank for source in study.sources.values() if not source.bank.startswith(STORE)}
    named = banks | {source.responses for source in study.sources.values()}
    if own is not None:
        named |= {own.file, own.fit, own.test}
        metric = metric_file(own.metric)
        named |= {metric} if (folder / metric).is_file() else set()
    files = sorted(named - {"", "pool"})
    for name in files:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise UsageError(
                f"{name} is not in the study file's folder: put it there and use a relative path"
            )
    return files


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    write_text(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file completely or not at all; its folder is created if necessary."""
    part = path.with_suffix(path.suffix + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from error


def read_json(path: Path, missing: str) -> dict[str, Any]:
    """A JSON object; a missing file raises a `UsageError` that says what to run."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"{path} does not exist: {missing}") from error
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise UsageError(f"{path} does not contain a JSON object")
    return value


def read_json_lines(file: Path, kind: type[T], what: str) -> Iterator[tuple[int, T]]:
    """The rows of a JSONL file with their line numbers; an error says `what` a line should be."""
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield number, msgspec.json.decode(line, type=kind)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise UsageError(f"{file} line {number} is not {what}: {mismatch(error)}") from error


def tasks_looked_at(space: Workspace) -> set[str]:
    """The fit rows that were used to refine a bank of the study."""
    return set(read_json(space.looked_at, "")["tasks"]) if space.looked_at.exists() else set()
