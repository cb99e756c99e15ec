"""A large bank of a SQLite store: entries stay in the store, and recall reads only those it returns."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache as cache_result
from hashlib import sha256
from pathlib import Path
from typing import Any

from heedful.errors import StoreError
from heedful.extras import absent, pip_line
from heedful.memory.bank import minilm
from heedful.memory.columns import (
    BankColumns,
    belongs,
    empty_columns,
    follow,
    kept_text,
    load_columns,
    save_columns,
    version_number,
)
from heedful.memory.database import in_daemon_thread
from heedful.memory.hnsw import HnswIndex, OnBuilt, build_index, index_file, open_index
from heedful.memory.index import Embedder, Floats
from heedful.memory.nearest import Search, rank
from heedful.memory.sqlite import bank_digest, bank_entries, entries_at
from heedful.memory.vector_file import Places, VectorFile
from heedful.memory.vectors import VectorCache
from heedful.types import Audience, Entry, Recall

TAIL = 10_000
"""Entries that are searched exactly beside the index; above it, and above a tenth of the bank, it grows."""

_SEEN = """
SELECT coalesce((SELECT max(seq) FROM entries WHERE bank = ?), 0),
       coalesce((SELECT max(seq) FROM states WHERE bank = ?), 0)
"""


class LargeBank:
    """Follows its store by columns; a state counts from the moment it is stored.

    Columns, vectors and index are caches: whatever is missing, stale or damaged is made again.
    """

    def __init__(
        self,
        cache: VectorCache,
        name: str,
        *,
        threshold: float,
        embedder: Callable[[], Embedder],
        grows: bool = True,
        tail: int = TAIL,
    ) -> None:
        """`grows`: `build` extends the index when it is due."""
        self.name = name
        self.stale = True
        """Whether the store has changes that the columns lack."""
        self._database = cache.database
        self._grows = grows
        self._threshold = threshold
        self._embedder = cache_result(embedder)
        self._cache = cache
        self._tail = tail
        self._working = threading.Lock()
        self._search: Search | None = None
        self._digest = ("", "")

    @property
    def indexed(self) -> int:
        """How many entries the index covers."""
        index = self._search.index if self._search else None
        return index.covered if index else 0

    @property
    def digest(self) -> str:
        """Read from the store once per revision, and kept beside the columns for the next process."""
        [seen] = self._query(_SEEN, (self.name, self.name))
        key = f"{tuple(seen)} {self._content()}"
        if self._digest[0] != key:
            file = self._saved.with_suffix(".digest")
            self._digest = (key, kept_text(file, key, lambda: bank_digest(self._database, self.name)))
        return self._digest[1]

    def entries(self) -> Sequence[Entry]:
        return bank_entries(self._database, self.name)

    @property
    def due(self) -> bool:
        """Whether the index should grow."""
        if self._search is None or absent("index"):
            return False
        return len(self._search.columns.places) - self.indexed > max(self._tail, self.indexed // 10)

    @property
    def waits(self) -> bool:
        """Whether `build` has work to do."""
        return self.stale or (self._grows and self.due)

    async def build(self) -> None:
        """Follow the store and extend the index, in a thread that nobody waits for when the process ends."""
        await in_daemon_thread(self._tend)

    def _tend(self) -> None:
        if self.stale:
            self.follow()
        if self._grows and self.due:
            self.extend()

    async def recall(self, query: str, *, limit: int, audience: Audience | None = None) -> list[Recall]:
        """The best entries that the audience sees, as the store has them now."""
        return await asyncio.to_thread(self._recall, query, limit, audience or Audience(at=time.time()))

    def follow(self, on_progress: OnBuilt | None = None) -> None:
        """Include every change of the store; new entries are embedded."""
        with self._working:
            self.stale = False
            known = self._search.columns if self._search else self._load()
            columns = self._followed(known, on_progress)
            if self._search is None or columns is not known:
                index = self._search.index if self._search else None
                if index is None or columns.generation != known.generation:
                    index = self._open(columns)
                self._search = Search(columns=columns, rows=self._file.rows(), index=index)
                self._save(columns, known.entries_seen)

    def extend(self, *, threads: int = 1, on_progress: OnBuilt | None = None) -> None:
        """Extend the index to every entry, and save it."""
        with self._working:
            assert self._search is not None, "the bank followed its store before"
            columns, rows = self._search.columns, self._file.rows()
            file = index_file(self._file.folder, self.name, columns.generation, columns.places)
            index = build_index(
                self._search.index, file, columns.places, rows, threads=threads, on_progress=on_progress
            )
            self._search = Search(columns=columns, rows=rows, index=index)

    def _recall(self, query: str, limit: int, audience: Audience) -> list[Recall]:
        assert self._search is not None, "the bank followed its store before"
        search, vector = self._search, self._embedder().embed([query])[0]
        wanted = limit
        while True:
            positions, scores = rank(search, vector, wanted, self._threshold, audience)
            recalls = self._read(search.columns, positions, scores, audience)
            if len(recalls) >= limit or len(positions) < wanted:
                return sorted(recalls, key=lambda recall: (-recall.score, recall.entry.id))[:limit]
            wanted = len(positions) * 2  # some were retired or changed a moment ago

    @property
    def _file(self) -> VectorFile:
        assert self._cache.file is not None, "a large bank has a file"
        return self._cache.file

    @property
    def _saved(self) -> Path:
        return self._file.folder / f"{sha256(self.name.encode()).hexdigest()[:12]}.columns.npz"

    def _content(self) -> str:
        """Tells this store from another one at the same path."""
        versions = self._search.columns.versions.tobytes() if self._search else b""
        return sha256(versions).hexdigest()

    def _load(self) -> BankColumns:
        columns = load_columns(self._saved)
        if columns is None or not belongs(columns, self._query, self.name):
            return empty_columns("")
        return columns

    def _followed(self, known: BankColumns, on_progress: OnBuilt | None) -> BankColumns:
        """Columns whose rows are all of the vector file's current generation."""
        while True:
            if known.generation != self._file.generation:
                known = empty_columns(self._file.generation)
            columns = follow(known, self._query, self.name, self._placing(len(known.seqs), on_progress))
            if not known.entries_seen:  # the first vectors start a generation
                columns = replace(columns, generation=self._file.generation)
            if columns.generation == self._file.generation:
                return columns

    def _save(self, columns: BankColumns, seen: int) -> None:
        """Keep the columns if reading the changes again would take long."""
        if columns.entries_seen - seen > self._tail // 10 or not self._saved.exists():
            try:
                save_columns(columns, self._saved)
            except OSError as error:
                raise StoreError(f"cannot write {self._saved}: {error.strerror}") from error

    def _open(self, columns: BankColumns) -> HnswIndex | None:
        if absent("index"):
            return None
        return open_index(self._file.folder, self.name, columns.generation, columns.places)

    def _placing(self, done: int, on_progress: OnBuilt | None) -> Callable[[Sequence[str]], Places]:
        total, placed = self._count() if on_progress else 0, done

        def places_of(texts: Sequence[str]) -> Places:
            nonlocal placed
            places = self._cache.places(texts, self._embedder())
            placed += len(texts)
            if on_progress is not None:
                on_progress(min(placed, total), total)
            return places

        return places_of

    def _read(
        self, columns: BankColumns, positions: Places, scores: Floats, audience: Audience
    ) -> list[Recall]:
        """The entries at these positions that are still live and unchanged."""
        seqs = [int(seq) for seq in columns.seqs[positions]]
        with self._database.reading() as connection:
            entries = entries_at(connection, self.name, seqs)
        return [
            Recall(entry=entries[seq], score=float(score))
            for seq, score, version in zip(seqs, scores, columns.versions[positions], strict=True)
            if seq in entries and _recallable(entries[seq], int(version), audience)
        ]

    def _count(self) -> int:
        return int(self._query("SELECT count(*) FROM entries WHERE bank = ?", (self.name,))[0][0])

    def _query(self, statement: str, values: Any) -> list[Any]:
        with self._database.reading() as connection:
            return connection.execute(statement, values).fetchall()


def _recallable(entry: Entry, version: int, audience: Audience) -> bool:
    return entry.live and audience.sees(entry) and version_number(entry.digest) == version


def open_large(
    cache: VectorCache,
    name: str,
    *,
    threshold: float,
    embedder: Callable[[], Embedder] | None,
    above: int,
    grows: bool = True,
    on_progress: OnBuilt | None = None,
) -> LargeBank | None:
    """The bank, if it has more than `above` entries and its vectors can be stored."""
    with cache.database.reading() as connection:
        counted = "SELECT count(*) FROM (SELECT 1 FROM entries WHERE bank = ? LIMIT ?)"
        (count,) = connection.execute(counted, (name, above + 1)).fetchone()
    if count <= above:
        return None
    bank = LargeBank(cache, name, threshold=threshold, embedder=embedder or minilm, grows=grows, tail=TAIL)
    log = logging.getLogger("heedful")
    if absent("index"):
        log.warning("bank %s is large; %s makes its recall faster", name, pip_line("index"))
    try:
        bank.follow(on_progress)
    except StoreError as error:
        log.warning("bank %s is recalled from a snapshot: %s", name, error)
        return None
    return bank
