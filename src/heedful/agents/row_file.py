"""An append-only file of JSON rows; a torn or changed row is skipped and counted."""

import os
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import IO, Generic, Self, TypeVar

import msgspec

from heedful.errors import StoreError
from heedful.protocol.ledger import ends_with_newline, held

T = TypeVar("T")


class RowFile(Generic[T]):
    """Rows of one type; a written row survives a crash of the process. One process may write at a time."""

    def __init__(self, path: Path, kind: type[T]) -> None:
        self.path = path
        self.rows: list[T] = []
        self.damaged = 0
        """Lines that cannot be read or do not match their checksum."""
        self._kind = kind
        self._file: IO[bytes] | None = None
        if path.exists():
            for line in path.read_bytes().split(b"\n"):
                if line:
                    self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            read = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
            row = msgspec.json.decode(read["row"], type=self._kind)
            intact = msgspec.json.decode(read["sum"]) == _sum(bytes(read["row"]))
        except (msgspec.MsgspecError, KeyError):
            intact = False
        if intact:
            self.rows.append(row)
        else:
            self.damaged += 1

    def __enter__(self) -> Self:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = held(self.path.open("ab", buffering=0))
            if self.path.stat().st_size and not ends_with_newline(self.path):
                self._file.write(b"\n")
        except BlockingIOError as error:
            raise StoreError(f"another process is writing to {self.path}: wait until it ends") from error
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None

    def append(self, row: T) -> None:
        """Write a row."""
        assert self._file is not None, "open the file with `with` before appending"
        written_row = msgspec.json.encode(row)
        line = msgspec.json.encode({"row": msgspec.Raw(written_row), "sum": _sum(written_row)}) + b"\n"
        try:
            written = self._file.write(line)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror}") from error
        if written < len(line):
            raise StoreError(f"{self.path} cannot be written: no space for a whole row; free some space")
        self.rows.append(row)


def _sum(row: bytes) -> str:
    """Of the bytes as they were written: a later version may add fields to a row."""
    return sha256(row).hexdigest()[:12]
