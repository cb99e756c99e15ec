"""An append-only file of JSON rows; a torn or changed row is skipped and counted."""

from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

import msgspec

from heedful.protocol.line_file import LineFile, read_lines

T = TypeVar("T")


class RowFile(Generic[T]):
    """Rows of one type; a written row survives a crash of the process. One process may write at a time."""

    def __init__(self, path: Path, kind: type[T]) -> None:
        self.path = path
        self.rows: list[T] = []
        self.damaged = 0
        """Lines that cannot be read or do not match their checksum."""
        self._kind = kind
        self._file = LineFile(path)
        for line in read_lines(path):
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
        self._file.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.__exit__(kind, error, trace)

    def append(self, row: T) -> None:
        """Write a row."""
        written = msgspec.json.encode(row)
        self._file.append(msgspec.json.encode({"row": msgspec.Raw(written), "sum": _sum(written)}) + b"\n")
        self.rows.append(row)


def _sum(row: bytes) -> str:
    """Of the bytes as they were written: a later version may add fields to a row."""
    return sha256(row).hexdigest()[:12]
