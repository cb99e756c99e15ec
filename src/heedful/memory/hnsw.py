"""An approximate index over rows of the vector file, memory-mapped; a cache like the rows."""

import os
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from heedful.extras import importing
from heedful.memory.index import Floats
from heedful.memory.vector_file import INDEX_SUFFIX, Places

CONNECTIVITY, EXPANSION = 16, 128
"""Neighbours per row, and candidates while adding one; more of them find more and build more slowly."""
SEARCHED = 160
"""Least number of candidates of a search; recall@5 depends on it (docs/design/028)."""
PART = 20_000
"""Rows that are added between two reports of progress."""
CHUNK = 1 << 22
OnBuilt = Callable[[int, int], None]
"""Reports how many of the rows are in the index."""


class _Seal(msgspec.Struct):
    """Proof that an index file is complete: unless size and time match, the checksum must."""

    size: int
    changed: int
    checksum: int


@dataclass(frozen=True, slots=True)
class HnswIndex:
    """The nearest rows, approximately; scores are for the caller to compute exactly."""

    engine: Any
    covered: int
    """Positions of the bank that it covers, from the first."""
    lock: threading.Lock

    def nearest(self, vector: Floats, count: int) -> Places:
        """About the `count` nearest rows."""
        with self.lock:
            self.engine.expansion_search = max(SEARCHED, 2 * count)
            keys = self.engine.search(vector, count, threads=1).keys
        return np.asarray(keys, np.int64)


def index_file(folder: Path, bank: str, generation: str, places: Places) -> Path:
    """The name contains a digest of the covered rows, so a stale file is never opened."""
    content = sha256(f"{generation} {len(places)} ".encode() + places.tobytes()).hexdigest()
    return folder / f"{_prefix(bank)}{len(places)}-{content[:16]}{INDEX_SUFFIX}"


def open_index(folder: Path, bank: str, generation: str, places: Places) -> HnswIndex | None:
    """The largest complete index of the bank; files that are stale or damaged are deleted."""
    with importing("index"):
        from usearch.index import Index

    files = sorted(folder.glob(f"{_prefix(bank)}*{INDEX_SUFFIX}"), key=_covered, reverse=True)
    for file in files:
        covered = _covered(file)
        if file != index_file(folder, bank, generation, places[:covered]) or not _complete(file):
            _delete(file)
            continue
        return HnswIndex(Index.restore(str(file), view=True), covered, threading.Lock())
    return None


def build_index(
    known: HnswIndex | None,
    file: Path,
    places: Places,
    rows: Floats,
    *,
    threads: int,
    on_progress: OnBuilt | None = None,
) -> HnswIndex:
    """An index of all places, from the rows that a known one lacks; it is saved to the file."""
    with importing("index"):
        from usearch.index import Index

    engine: Any = Index(
        ndim=rows.shape[1], metric="cos", dtype="i8", connectivity=CONNECTIVITY, expansion_add=EXPANSION
    )
    if known is not None:
        engine = known.engine.copy()
    start = 0 if known is None else known.covered
    fresh = np.setdiff1d(places[start:], places[:start])
    for at in range(0, len(fresh), PART):
        part = fresh[at : at + PART]
        engine.add(part.astype(np.uint64), rows[part], threads=threads)
        if on_progress is not None:
            on_progress(min(at + PART, len(fresh)), len(fresh))
    _save(engine, file)
    return HnswIndex(engine, len(places), threading.Lock())


def _save(engine: Any, file: Path) -> None:
    """Write file and seal; the older indexes of the bank are deleted."""
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    engine.save(str(part))
    with open(part, "rb") as written:
        os.fsync(written.fileno())
    checksum, status = _checksum(part), part.stat()
    seal = _Seal(size=status.st_size, changed=status.st_mtime_ns, checksum=checksum)
    _seal_of(file).write_bytes(msgspec.json.encode(seal))
    part.replace(file)
    for old in file.parent.glob(f"{file.name.split('-')[0]}-*{INDEX_SUFFIX}"):
        if old != file:
            _delete(old)


def _complete(file: Path) -> bool:
    try:
        seal, status = msgspec.json.decode(_seal_of(file).read_bytes(), type=_Seal), file.stat()
        if (status.st_size, status.st_mtime_ns) == (seal.size, seal.changed):
            return True
        return status.st_size == seal.size and _checksum(file) == seal.checksum
    except (OSError, msgspec.MsgspecError):
        return False


def _checksum(file: Path) -> int:
    checksum = 0
    with open(file, "rb") as content:
        while block := content.read(CHUNK):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _delete(file: Path) -> None:
    file.unlink(missing_ok=True)
    _seal_of(file).unlink(missing_ok=True)


def _seal_of(file: Path) -> Path:
    return file.with_suffix(".seal")


def _prefix(bank: str) -> str:
    return f"{sha256(bank.encode()).hexdigest()[:12]}-"


def _covered(file: Path) -> int:
    number = file.name.split("-")[1]
    return int(number) if number.isdigit() else 0
