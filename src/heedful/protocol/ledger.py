"""The ledger: one row a pass, appended, never edited; every policy is computed from it."""

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from errno import ENOSPC
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self

import msgspec

from heedful.errors import StoreError
from heedful.types import Side, digest_of

Key = tuple[Side, int, str, str]
"""Side, seed, source, task."""
SYNC_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A recalled entry: id, version and score."""

    entry: str
    version: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What one source did for one task; question texts stay out of the ledger."""

    side: Side
    seed: int
    source: str
    task: str
    prompt: str
    """Digest of the prompt and of the source's settings."""
    model: str
    """Fingerprint of the model."""
    status: Literal["decoded", "nothing"]
    """`nothing`: the source had nothing to add (nothing was recalled), no call was made."""
    text: str = ""
    answer: str = ""
    right: bool = False
    signals: Mapping[str, float] = field(default_factory=dict)
    """Confidence by each signal; one that could not be measured is absent."""
    guards: Mapping[str, str] = field(default_factory=dict)
    """Reason by each guard; empty: it passed."""
    recalls: tuple[Seen, ...] = ()
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0

    @property
    def key(self) -> Key:
        return (self.side, self.seed, self.source, self.task)


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A line of the ledger that cannot be trusted."""

    line: int
    problem: str


class Ledger:
    """A file of passes; opened for appending by one process at a time."""

    def __init__(self, path: Path, parent: "Ledger | None" = None) -> None:
        """`parent` is a ledger whose passes need not be decoded again."""
        self.path = path
        self.passes: dict[Key, Pass] = {}
        """The newest pass of each key."""
        self._parent = parent
        self._ever: dict[tuple[Key, str, str], Pass] = {}
        self.damage: list[Damage] = []
        self._file: IO[bytes] | None = None
        self._synced = 0.0
        self._before = b""
        """What goes before the next row: a line break after one that was cut, which must not swallow it."""
        if path.exists():
            for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
                if line:
                    self._take(number, line)

    def _take(self, number: int, line: bytes) -> None:
        try:
            row = read_row(line)
        except ValueError as error:
            self.damage.append(Damage(line=number, problem=str(error)))
            return
        self._keep(row)

    def _keep(self, row: Pass) -> None:
        self.passes[row.key] = row
        self._ever[row.key, row.prompt, row.model] = row

    def find(self, wanted: Pass) -> Pass | None:
        """The pass with this key, prompt and model, even if another prompt has been recorded since."""
        found = self._ever.get((wanted.key, wanted.prompt, wanted.model))
        return found if found is not None or self._parent is None else self._parent.find(wanted)

    def __enter__(self) -> Self:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = _held(self.path.open("ab", buffering=0))
            if self.path.stat().st_size and not self._ends_with_newline():
                self._before = b"\n"
        except BlockingIOError as error:
            raise StoreError(f"another process is recording to {self.path}: wait until it ends") from error
        except OSError as error:
            raise StoreError(f"the ledger {self.path} cannot be written: {error.strerror}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None

    def append(self, row: Pass) -> None:
        """Write a row; it survives the end of this process, and a power cut after at most a second."""
        assert self._file is not None, "open the ledger with `with` before appending"
        try:
            line = self._before + written_row(row)
            self._before = b"\n"
            if self._file.write(line) < len(line):
                raise OSError(ENOSPC, "there is no room for a whole row")
            self._before = b""
            if time.monotonic() - self._synced > SYNC_SECONDS:
                os.fsync(self._file.fileno())
                self._synced = time.monotonic()
        except OSError as error:
            raise StoreError(
                f"the ledger {self.path} cannot be written: {error.strerror}; what was recorded is kept, "
                "make room and run the same command again"
            ) from error
        self._keep(row)

    def of(self, side: Side, source: str) -> Iterator[Pass]:
        """The passes of a source on a side."""
        return (row for row in self.passes.values() if row.side == side and row.source == source)

    def distinct(self) -> Iterator[Pass]:
        """Every pass that was decoded, those of an earlier prompt or model too."""
        return iter(self._ever.values())

    def _ends_with_newline(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"


def _held(file: IO[bytes]) -> IO[bytes]:
    """The file, which no other process may hold too; on systems without `flock` nothing sees to that."""
    try:
        import fcntl
    except ImportError:
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise
    return file


def written_row(row: Pass) -> bytes:
    """A row as a line of JSON that carries a check sum of the rest."""
    fields = msgspec.to_builtins(row)
    return (json.dumps({**fields, "sum": _sum(fields)}, ensure_ascii=False) + "\n").encode()


def read_row(line: bytes) -> Pass:
    """The row of a line; raises `ValueError` for a line that was cut or changed."""
    try:
        fields: dict[str, Any] = json.loads(line)
        total = fields.pop("sum")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ValueError("the row is cut or not JSON") from error
    if total != _sum(fields):
        raise ValueError("the row does not match its check sum")
    return msgspec.convert(fields, Pass)


def _sum(fields: dict[str, Any]) -> str:
    return digest_of(fields)[:12]
