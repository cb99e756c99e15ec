"""Banks in SQLite: versions and states are appended, and nothing is edited in place."""

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from heedful.errors import StoreError
from heedful.memory.database import Database, in_daemon_thread
from heedful.memory.entries import distinct_ids, refuse_bank_name
from heedful.memory.rows import (
    ENTRY_COLUMNS,
    EVIDENCE_COLUMNS,
    STATE_COLUMNS,
    change_of,
    change_to_log,
    entry_of,
    entry_values,
    evidence_values,
    only_match,
    put_steps,
    state_values,
    version_of,
)
from heedful.types import Entry, Evidence, Mark, StateChange, digest_of

if TYPE_CHECKING:
    from heedful.memory.feedback import SqliteFeedback
    from heedful.memory.index import Embedder, TextVectors
    from heedful.memory.journal import SqliteJournal
    from heedful.memory.large import LargeBank
    from heedful.memory.purge import PurgeCount, PurgeOrder
    from heedful.memory.vectors import OnVectors, VectorCache

IN_MEMORY = Path(":memory:")
"""SQLite's name for a database without a file."""
LOOKED_UP = 500
"""Entries in one query."""
_CURRENT_OF = """
SELECT e.*, coalesce(s.state, 'active') AS state, coalesce(s.reason, '') AS reason
FROM entries e
LEFT JOIN states s ON s.seq = (SELECT max(seq) FROM states WHERE bank = e.bank AND id = e.id)
WHERE e.seq = (SELECT max(seq) FROM entries WHERE bank = e.bank AND id = e.id)
  AND e.bank = ? AND e.purged IS NULL
"""
_VERSION_STATES = _CURRENT_OF.replace("e.*", "e.id, e.digest").replace(
    ", coalesce(s.reason, '') AS reason", ""
)
_CURRENT = f"""
{_CURRENT_OF}
ORDER BY (SELECT min(seq) FROM entries WHERE bank = e.bank AND id = e.id)
"""
_VERSIONS = """
SELECT *, 'active' AS state, '' AS reason FROM entries
WHERE bank = ? AND id = ? AND purged IS NULL ORDER BY seq
"""
_AUDIT = """
SELECT at, id, lag(state, 1, 'active') OVER (PARTITION BY id ORDER BY seq) AS before, state, reason, actor,
    grounds
FROM states WHERE bank = ? ORDER BY seq
"""
_EVIDENCE = "SELECT entry, version, task, utility, decision FROM evidence WHERE bank = ? ORDER BY seq"
_REVISION = """
SELECT coalesce((SELECT max(seq) FROM entries WHERE bank = ?), 0)
     + coalesce((SELECT max(seq) FROM states WHERE bank = ?), 0)
"""


@dataclass(frozen=True, slots=True)
class SqliteStore:
    """Stores banks and their evidence; acknowledged writes survive a crash."""

    database: Database

    @property
    def location(self) -> str:
        return str(self.database.path)

    @property
    def journal(self) -> "SqliteJournal":
        from heedful.memory.journal import SqliteJournal

        return SqliteJournal(self.database)

    @property
    def feedback(self) -> "SqliteFeedback":
        from heedful.memory.feedback import SqliteFeedback

        return SqliteFeedback(self.database)

    async def put(self, bank: str, entries: Sequence[Entry]) -> int:
        """Add versions, all or none; an existing entry keeps its state, and gets a new version only if its
        content changed."""
        refuse_bank_name(bank)
        return await self.database.write(lambda connection: _put(connection, bank, entries))

    async def banks(self) -> Mapping[str, int]:
        query = "SELECT bank, count(DISTINCT id) FROM entries WHERE purged IS NULL GROUP BY bank"
        return dict(await self.database.read(lambda connection: connection.execute(query).fetchall()))

    async def revision(self, bank: str) -> int:
        rows = await self._rows(_REVISION, bank, bank)
        return int(rows[0][0])

    async def entries(self, bank: str) -> Sequence[Entry]:
        return [entry_of(row) for row in await self._rows(_CURRENT, bank)]

    async def entry(self, bank: str, entry: str) -> Entry:
        return await self.database.read(lambda connection: _find(connection, bank, entry))

    async def version(self, bank: str, entry: str, digest: str) -> Entry:
        return version_of(bank, entry, digest, await self.versions(bank, entry))

    async def versions(self, bank: str, entry: str) -> Sequence[Entry]:
        return [entry_of(row) for row in await self._rows(_VERSIONS, bank, entry)]

    async def history(self, bank: str, entry: str) -> Sequence[StateChange]:
        return [change for change in await self.audit(bank) if change.entry == entry]

    async def audit(self, bank: str) -> Sequence[StateChange]:
        return [change_of(row) for row in await self._rows(_AUDIT, bank)]

    async def mark(self, bank: str, marks: Sequence[Mark]) -> Sequence[Entry]:
        return await self.database.write(lambda connection: [_mark(connection, bank, mark) for mark in marks])

    async def observe(self, bank: str, evidence: Sequence[Evidence]) -> None:
        statement = _insert("evidence", EVIDENCE_COLUMNS)
        await self.database.insert(statement, evidence_values(bank, evidence))

    async def evidence(self, bank: str) -> Sequence[Evidence]:
        return [Evidence(**dict(row)) for row in await self._rows(_EVIDENCE, bank)]

    async def named(self, bank: str, ids: Sequence[str]) -> list[Entry]:
        """Those of the named entries that a bank has."""
        return await self.database.read(lambda connection: list(_known(connection, bank, ids).values()))

    async def purge(self, order: "PurgeOrder") -> "PurgeCount":
        """Delete texts for good, also from the file's free space."""
        from heedful.memory.purge import purge

        return await in_daemon_thread(lambda: purge(self.database, order))

    async def purge_count(self, order: "PurgeOrder") -> "PurgeCount":
        """What an order would delete."""
        from heedful.memory.purge import count

        return await in_daemon_thread(lambda: count(self.database, order))

    async def ready(self) -> None:
        """Raise `StoreError` unless the file is there and can be written."""
        path = self.database.path
        if path != IN_MEMORY and not path.is_file():
            raise StoreError(f"the file {path} is gone; restart the server")
        [(read_only,)] = await self._rows("PRAGMA query_only")
        if read_only or (path != IN_MEMORY and not os.access(path, os.W_OK)):
            raise StoreError(
                f"the store {path} cannot be written, so no decision would be recorded: make it writable, "
                "or choose another file with --store"
            )

    async def condition(self) -> str:
        """`intact`; raises `StoreError` if the file is damaged."""
        [(state,)] = await self._rows("PRAGMA integrity_check")
        if state != "ok":
            raise StoreError(f"{self.location} is damaged ({state}): restore it from a backup")
        return "intact"

    def vector_cache(self, on_progress: "OnVectors | None" = None) -> "VectorCache":
        from heedful.memory.vectors import VectorCache

        return VectorCache(self.database, on_progress)

    def open_large(
        self,
        name: str,
        *,
        threshold: float,
        embedder: "Callable[[], Embedder] | None",
        above: int,
        grows: bool = True,
        cache: "TextVectors | None" = None,
        on_progress: "OnVectors | None" = None,
    ) -> "LargeBank | None":
        """The bank over the vector file, if it has more than `above` entries (docs/design/028)."""
        from heedful.memory.large import open_large
        from heedful.memory.vectors import VectorCache

        cache = cache or self.vector_cache()
        if not isinstance(cache, VectorCache) or cache.file is None:
            return None
        return open_large(
            *(cache, name),
            threshold=threshold,
            embedder=embedder,
            above=above,
            grows=grows,
            on_progress=on_progress,
        )

    def reopened(self) -> "SqliteStore":
        """The same file with a connection of its own."""
        return SqliteStore(Database(self.database.path))

    async def aclose(self) -> None:
        self.database.close()

    async def _rows(self, query: str, *values: str) -> list[sqlite3.Row]:
        return await self.database.read(lambda connection: connection.execute(query, values).fetchall())


def bank_entries(database: Database, bank: str) -> list[Entry]:
    """The newest version of every entry of a bank, for code without an event loop."""
    with database.reading() as connection:
        return _read(connection, bank)


def bank_digest(database: Database, bank: str) -> str:
    """The digest of a bank, without its texts."""
    with database.reading() as connection:
        rows = connection.execute(_VERSION_STATES, (bank,)).fetchall()
    return digest_of(sorted(list(row) for row in rows))


def entries_at(connection: sqlite3.Connection, bank: str, seqs: Sequence[int]) -> dict[int, Entry]:
    """The entries at these rows, by row number; rows that a newer version replaced are left out."""
    return {row["seq"]: entry_of(row) for row in _looked_up(connection, bank, "seq", seqs)}


def _find(connection: sqlite3.Connection, bank: str, wanted: str) -> Entry:
    matches = list(_known(connection, bank, [wanted]).values())
    if not matches:
        query = f"{_CURRENT_OF} AND substr(e.id, 1, ?) = ? LIMIT 6"
        matches = [entry_of(row) for row in connection.execute(query, (bank, len(wanted), wanted))]
    return only_match(bank, wanted, matches)


def _read(connection: sqlite3.Connection, bank: str) -> list[Entry]:
    return [entry_of(row) for row in connection.execute(_CURRENT, (bank,)).fetchall()]


def _put(connection: sqlite3.Connection, bank: str, entries: Sequence[Entry]) -> int:
    entries = distinct_ids(_known(connection, bank, [entry.id for entry in entries]), entries)
    steps = list(put_steps(_known(connection, bank, [entry.id for entry in entries]), entries))
    for step in steps:
        connection.execute(_insert("entries", ENTRY_COLUMNS), entry_values(bank, step.entry))
        if step.mark is not None:
            _log(connection, bank, step.mark)
    return len(steps)


def _known(connection: sqlite3.Connection, bank: str, ids: Sequence[str]) -> dict[str, Entry]:
    """Those of the entries that the bank has."""
    return {row["id"]: entry_of(row) for row in _looked_up(connection, bank, "id", ids)}


def _looked_up(
    connection: sqlite3.Connection, bank: str, column: Literal["id", "seq"], wanted: Sequence[str | int]
) -> Iterator[sqlite3.Row]:
    """The current versions with these values of a column, some per query."""
    for start in range(0, len(wanted), LOOKED_UP):
        part = wanted[start : start + LOOKED_UP]
        query = f"{_CURRENT_OF} AND e.{column} IN ({','.join('?' * len(part))})"
        yield from connection.execute(query, (bank, *part)).fetchall()


def _mark(connection: sqlite3.Connection, bank: str, mark: Mark) -> Entry:
    known = _find(connection, bank, mark.entry)
    change = change_to_log(known, mark)
    if change is None:
        return known
    _log(connection, bank, change)
    return replace(known, state=mark.state, reason=mark.reason)


def _log(connection: sqlite3.Connection, bank: str, mark: Mark) -> None:
    """The state of an entry is its newest row in the log, so the two cannot disagree."""
    connection.execute(_insert("states", STATE_COLUMNS), state_values(bank, mark))


def _insert(table: str, columns: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
