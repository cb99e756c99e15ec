"""Vectors in a memory-mapped file beside the store; a cache that can be deleted at any time."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from uuid import uuid4
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from heedful.errors import StoreError
from heedful.memory.index import Floats

Places = NDArray[np.int64]
T = TypeVar("T")
MISSING = -1
LOOKED_UP = 500
"""Keys in one query."""
INDEX_SUFFIX = ".index"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS file (generation TEXT NOT NULL, width INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS keys (key BLOB PRIMARY KEY, place INTEGER NOT NULL) WITHOUT ROWID;
"""
_SIZE = "SELECT coalesce(max(place) + 1, 0) FROM keys"


class VectorFile:
    """Rows of float32 under digests of texts.

    A row is on disk before its key is committed, and SQLite commits keys atomically for several processes: a
    row without a key is overwritten, and a key without a row is forgotten.
    """

    def __init__(self, folder: Path, model: str) -> None:
        self.folder = folder
        self._keys = folder / f"{model}.db"
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._map: Floats | None = None
        self._mapped = ("", 0)

    @property
    def generation(self) -> str:
        """Changes when the file starts anew: places of another generation are void."""
        return self._run(lambda connection: _header(connection)[0])

    def places(self, keys: Sequence[bytes]) -> Places:
        """The row of each key, or MISSING."""

        def look_up(connection: sqlite3.Connection) -> Places:
            known: dict[bytes, int] = {}
            for start in range(0, len(keys), LOOKED_UP):
                part = keys[start : start + LOOKED_UP]
                marks = ",".join("?" * len(part))
                known |= dict(connection.execute(f"SELECT key, place FROM keys WHERE key IN ({marks})", part))
            return np.array([known.get(key, MISSING) for key in keys], np.int64)

        return self._run(look_up)

    def rows(self) -> Floats:
        """Every row, memory-mapped."""

        def mapped(connection: sqlite3.Connection) -> Floats:
            generation, width = _header(connection)
            (size,) = connection.execute(_SIZE).fetchone()
            if self._map is None or self._mapped != (generation, size):
                empty = np.zeros((0, max(width, 1)), np.float32)
                self._map = (
                    np.memmap(self._data(generation), np.float32, "r", shape=(size, width)) if size else empty
                )
                self._mapped = (generation, size)
            return self._map

        return self._run(mapped)

    def append(self, keys: Sequence[bytes], vectors: Floats) -> None:
        """Store vectors under keys; a known key keeps its row."""

        def add(connection: sqlite3.Connection) -> None:
            with _transaction(connection):
                generation = _generation_for(connection, vectors.shape[1])
                (size,) = connection.execute(_SIZE).fetchone()
                with open(self._data(generation), "r+b" if size else "wb") as file:
                    file.truncate(size * vectors.shape[1] * 4)
                    file.seek(0, os.SEEK_END)
                    file.write(np.ascontiguousarray(vectors, np.float32).tobytes())
                    file.flush()
                    os.fsync(file.fileno())
                rows = [(key, size + at) for at, key in enumerate(keys)]
                connection.executemany("INSERT OR IGNORE INTO keys VALUES (?, ?)", rows)

        self._run(add)

    def forget(self, keys: Sequence[bytes]) -> None:
        """Overwrite the rows of these keys, and delete the indexes, which hold copies."""

        def blank(connection: sqlite3.Connection) -> None:
            generation, width = _header(connection)
            with _transaction(connection):
                for key in keys:
                    for (place,) in connection.execute("SELECT place FROM keys WHERE key = ?", (key,)):
                        with open(self._data(generation), "r+b") as file:
                            file.seek(place * width * 4)
                            file.write(bytes(width * 4))
                    connection.execute("DELETE FROM keys WHERE key = ?", (key,))

        if keys and self._keys.exists():
            self._run(blank)
            for index in self.folder.glob(f"*{INDEX_SUFFIX}"):
                index.unlink(missing_ok=True)

    def _data(self, generation: str) -> Path:
        return self.folder / f"{self._keys.stem}.{generation}.f32"

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work`; if the cache is damaged, start it anew and run `work` again."""
        with self._lock:
            try:
                try:
                    return work(self._open())
                except (sqlite3.DatabaseError, FileNotFoundError, ValueError) as error:
                    if isinstance(error, sqlite3.OperationalError) and self._keys.exists():
                        raise
                    self._reset()
                    return work(self._open())
            except (OSError, sqlite3.Error) as error:
                raise StoreError(f"the vectors in {self.folder} cannot be used: {error}") from error

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(
                self._keys, isolation_level=None, check_same_thread=False, timeout=30.0
            )
            finalize(self, connection.close)
            self._connection = connection
            connection.executescript(_SCHEMA)
            self._forget_lost_rows(connection)
        return self._connection

    def _forget_lost_rows(self, connection: sqlite3.Connection) -> None:
        """Drop keys whose rows are missing; a new generation makes their places void."""
        generation, width = _header(connection)
        (size,) = connection.execute(_SIZE).fetchone()
        data = self._data(generation)
        kept = data.stat().st_size // (width * 4) if size and data.exists() else 0
        if kept < size:
            with _transaction(connection):
                renewed = uuid4().hex[:12]
                connection.execute("DELETE FROM keys WHERE place >= ?", (kept,))
                connection.execute("UPDATE file SET generation = ?", (renewed,))
                if data.exists():
                    data.rename(self._data(renewed))

    def _reset(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection, self._map = None, None
        for file in self.folder.glob(f"{self._keys.stem}.*"):
            file.unlink(missing_ok=True)


def _header(connection: sqlite3.Connection) -> tuple[str, int]:
    row = connection.execute("SELECT generation, width FROM file").fetchone()
    return (str(row[0]), int(row[1])) if row else ("", 0)


def _generation_for(connection: sqlite3.Connection, width: int) -> str:
    """The current generation, or a new one if the vectors have another width: another encoder made them."""
    generation, known = _header(connection)
    if known == width:
        return generation
    connection.execute("DELETE FROM file")
    connection.execute("DELETE FROM keys")
    generation = uuid4().hex[:12]
    connection.execute("INSERT INTO file VALUES (?, ?)", (generation, width))
    return generation


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
