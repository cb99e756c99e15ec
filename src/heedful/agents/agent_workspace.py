"""The folder of an agent study: its file, bank, episodes, decodes, texts, fit, lock and report."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from heedful.agents.agent_study import AgentStudy, read_agent_study
from heedful.agents.decode_cache import DecodeRow
from heedful.agents.episode_record import EpisodeRecord
from heedful.agents.play import text_digest
from heedful.agents.row_file import RowFile
from heedful.errors import MissingError, UsageError
from heedful.memory.formats import read_entries
from heedful.types import EpisodeSide

EpisodeKey = tuple[EpisodeSide, str, str, str, int, tuple[str, ...]]


class TextRow(msgspec.Struct, frozen=True):
    """The text of an observation or a goal, by its digest."""

    digest: str
    text: str


@dataclass(frozen=True, slots=True)
class AgentFolder:
    folder: Path

    @property
    def study(self) -> Path:
        return self.folder / "study.toml"

    @property
    def episodes(self) -> Path:
        return self.folder / "episodes.jsonl"

    @property
    def decodes(self) -> Path:
        """The decode cache; a study can be reported without it."""
        return self.folder / "decodes.jsonl"

    @property
    def texts(self) -> Path:
        """Texts of observations and goals; a study can be reported without it, its traces without texts."""
        return self.folder / "texts.jsonl"

    @property
    def fit(self) -> Path:
        return self.folder / "fit.json"

    @property
    def lock(self) -> Path:
        return self.folder / "lock.json"


def open_agent_folder(place: Path, out: Path | None) -> tuple[AgentFolder, AgentStudy]:
    """The folder of a study, given its file or its folder; a study file is copied there with its bank."""
    if place.is_dir():
        folder = AgentFolder(place)
        if not folder.study.is_file():
            raise UsageError(f"{place} is not the folder of an agent study: it has no study.toml")
        return folder, read_agent_study(folder.study)
    study = read_agent_study(place)
    folder = AgentFolder(out if out is not None else Path("results") / study.name)
    if folder.study.exists() and folder.study.resolve() == place.resolve():
        return folder, study
    if folder.lock.exists() and (other := _other_files(place, study, folder)):
        raise UsageError(
            f"{folder.folder} holds a locked study with another {' and '.join(other)}: give that folder to "
            "continue its study, or choose another folder with --out"
        )
    _copy(place, study, folder)
    return folder, study


def _other_files(place: Path, study: AgentStudy, folder: AgentFolder) -> list[str]:
    """The given files that differ from those that were locked, or are missing there."""
    pairs = ((place, folder.study), (place.parent / study.bank, folder.folder / study.bank))
    return [
        given.name for given, copy in pairs if not (given.exists() and copy.exists() and _same(given, copy))
    ]


def _same(one: Path, other: Path) -> bool:
    return one.read_bytes() == other.read_bytes()


def _copy(place: Path, study: AgentStudy, folder: AgentFolder) -> None:
    if not (place.parent / study.bank).is_file():
        raise MissingError(f"{place.parent / study.bank}, named in {place}, does not exist")
    try:
        folder.folder.mkdir(parents=True, exist_ok=True)
        bank = folder.folder / study.bank
        if not (bank.exists() and bank.samefile(place.parent / study.bank)):
            shutil.copyfile(place.parent / study.bank, bank)
        shutil.copyfile(place, folder.study)
    except OSError as error:
        raise UsageError(f"the folder {folder.folder} cannot be written: {error.strerror}") from error


@dataclass(slots=True, kw_only=True)
class AgentFiles:
    """The open files of a study."""

    episodes: RowFile[EpisodeRecord]
    decodes: RowFile[DecodeRow]
    texts: RowFile[TextRow]
    _known: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._known = {row.digest for row in self.texts.rows}

    def remember(self, text: str) -> None:
        """Store a text under its digest, once."""
        digest = text_digest(text)
        if digest not in self._known:
            self._known.add(digest)
            self.texts.append(TextRow(digest, text))


@contextmanager
def open_files(folder: AgentFolder) -> Iterator[AgentFiles]:
    """Open the files of a study for writing; another process that writes is refused."""
    with ExitStack() as stack:
        yield AgentFiles(
            episodes=stack.enter_context(RowFile(folder.episodes, EpisodeRecord)),
            decodes=stack.enter_context(RowFile(folder.decodes, DecodeRow)),
            texts=stack.enter_context(RowFile(folder.texts, TextRow)),
        )


def newest(rows: list[EpisodeRecord]) -> dict[EpisodeKey, EpisodeRecord]:
    """The newest record of each episode."""
    return {row.key: row for row in rows}


def read_texts(folder: AgentFolder) -> dict[str, str]:
    """The stored texts by digest; empty if they were left out."""
    return {row.digest: row.text for row in RowFile(folder.texts, TextRow).rows}


def read_entry_texts(folder: AgentFolder, study: AgentStudy) -> dict[str, str]:
    """The texts of the bank's entries by id; empty if the bank was left out."""
    bank = folder.folder / study.bank
    entries = read_entries(bank)[0] if bank.exists() else ()
    return {entry.id: f"{entry.text} {entry.response}".strip() for entry in entries}
