"""An append-only file of lines for one writer at a time; a finished file may be packed."""

import gzip
import os
import time
from collections.abc import Sequence
from errno import ENOSPC
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from heedful.errors import StoreError

SYNC_SECONDS = 1.0
SUFFIX = ".gz"
"""Of a packed file; `zcat` shows its lines."""


class LineFile:
    """Appends whole lines; an appended line survives a crash of the process at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None
        self._synced = 0.0
        self._before = b""
        """Written before the next line: a line break after a truncated line, to keep the two apart."""

    def __enter__(self) -> Self:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            unpack(self.path)
            self._file = held(self.path.open("ab", buffering=0))
            if self.path.stat().st_size and not ends_with_newline(self.path):
                self._before = b"\n"
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

    def append(self, line: bytes) -> None:
        """Write a line that ends with a line break; it survives a power cut after a second."""
        assert self._file is not None, "open the file with `with` before appending"
        try:
            whole = self._before + line
            self._before = b"\n"
            if self._file.write(whole) < len(whole):
                raise OSError(ENOSPC, "no space for a whole row")
            self._before = b""
            if time.monotonic() - self._synced > SYNC_SECONDS:
                os.fsync(self._file.fileno())
                self._synced = time.monotonic()
        except OSError as error:
            raise StoreError(
                f"{self.path} cannot be written: {error.strerror}; recorded rows are kept, "
                "free some space and run the same command again"
            ) from error


def read_lines(path: Path) -> list[bytes]:
    """The lines of a file or of its packed form; none if neither exists. Numbering starts at the first."""
    if path.exists():
        return path.read_bytes().split(b"\n")
    if packed(path).exists():
        try:
            return gzip.decompress(packed(path).read_bytes()).split(b"\n")
        except (OSError, EOFError) as error:
            raise StoreError(f"{packed(path)} is damaged: {error}; restore the file") from error
    return []


def has_lines(path: Path) -> bool:
    """Whether a file exists, packed or not."""
    return path.exists() or packed(path).exists()


def packed(path: Path) -> Path:
    """Where the packed form of a file is."""
    return path.with_name(path.name + SUFFIX)


def pack(path: Path) -> None:
    """Replace a file with its packed form; the same lines always give the same bytes."""
    temporary = packed(path).with_suffix(".part")
    temporary.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    temporary.replace(packed(path))
    path.unlink()


def pack_below(folder: Path, names: Sequence[str]) -> dict[Path, tuple[int, int]]:
    """Pack the files with these names in a folder and below; the size of each before and after."""
    sizes = {}
    for path in sorted(found for name in names for found in folder.rglob(name)):
        with LineFile(path):
            before = path.stat().st_size
            pack(path)
        sizes[path] = (before, packed(path).stat().st_size)
    return sizes


def unpack(path: Path) -> None:
    """Replace a packed file with the file itself, if there is only the packed one."""
    if not path.exists() and packed(path).exists():
        temporary = path.with_suffix(".part")
        temporary.write_bytes(b"\n".join(read_lines(path)))
        temporary.replace(path)
    packed(path).unlink(missing_ok=True)


def ends_with_newline(path: Path) -> bool:
    """Whether the last line of a file that is not empty is whole."""
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def held(file: IO[bytes]) -> IO[bytes]:
    """The file, locked against other processes; not locked on systems without `flock`."""
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


def is_held(path: Path) -> bool:
    """Whether a writer has the file open; unknown, and so False, on systems without `flock`."""
    try:
        with path.open("rb") as file:
            held(file)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
