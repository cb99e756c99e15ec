"""Banks in SQLite: versions and states are appended, and nothing is edited in place."""

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from heedful.errors import UsageError
from heedful.memory.database import Database
from heedful.memory.entries import refuse_bank_name
from heedful.types import Entry, Evidence, Mark, State, StateChange

_CURRENT = """
SELECT e.*, coalesce(s.state, 'active') AS state, coalesce(s.reason, '') AS reason
FROM entries e
LEFT JOIN states s ON s.seq = (SELECT max(seq) FROM states WHERE bank = e.bank AND id = e.id)
WHERE e.seq = (SELECT max(seq) FROM entries WHERE bank = e.bank AND id = e.id)
  AND e.bank = ? AND e.purged IS NULL
ORDER BY (SELECT min(seq) FROM entries WHERE bank = e.bank AND id = e.id)
"""
_VERSIONS = """
SELECT *, 'active' AS state, '' AS reason FROM entries
WHERE bank = ? AND id = ? AND purged IS NULL ORDER BY seq
"""
_HISTORY = "SELECT at, state, reason FROM states WHERE bank = ? AND id = ? ORDER BY seq"
_EVIDENCE = "SELECT entry, version, task, utility, decision FROM evidence WHERE bank = ? ORDER BY seq"
_REVISION = """
SELECT coalesce((SELECT max(seq) FROM entries WHERE bank = ?), 0)
     + coalesce((SELECT max(seq) FROM states WHERE bank = ?), 0)
"""


@dataclass(frozen=True, slots=True)
class SqliteStore:
    """Stores banks and their evidence; acknowledged writes survive a crash."""

    database: Database

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
        return [_entry(row) for row in await self._rows(_CURRENT, bank)]

    async def entry(self, bank: str, entry: str) -> Entry:
        return _find(await self.entries(bank), bank, entry)

    async def version(self, bank: str, entry: str, digest: str) -> Entry:
        for known in await self.versions(bank, entry):
            if known.digest == digest:
                return known
        raise UsageError(f"bank {bank!r} has no version {digest[:12]} of entry {entry!r}")

    async def versions(self, bank: str, entry: str) -> Sequence[Entry]:
        return [_entry(row) for row in await self._rows(_VERSIONS, bank, entry)]

    async def history(self, bank: str, entry: str) -> Sequence[StateChange]:
        return [StateChange(**dict(row)) for row in await self._rows(_HISTORY, bank, entry)]

    async def mark(self, bank: str, marks: Sequence[Mark]) -> Sequence[Entry]:
        return await self.database.write(lambda connection: [_mark(connection, bank, mark) for mark in marks])

    async def observe(self, bank: str, evidence: Sequence[Evidence]) -> None:
        for seen in evidence:
            if not isinstance(seen.utility, int | float) or not -1 <= seen.utility <= 1:
                raise UsageError(
                    f"evidence about entry {seen.entry!r}: a utility must be between -1 and 1, "
                    f"not {seen.utility!r}"
                )
        rows = [(time.time(), bank, e.entry, e.version, e.task, e.utility, e.decision) for e in evidence]
        statement = (
            "INSERT INTO evidence (at, bank, entry, version, task, utility, decision) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)"
        )
        await self.database.write(lambda connection: connection.executemany(statement, rows))

    async def evidence(self, bank: str) -> Sequence[Evidence]:
        return [Evidence(**dict(row)) for row in await self._rows(_EVIDENCE, bank)]

    async def aclose(self) -> None:
        self.database.close()

    async def _rows(self, query: str, *values: str) -> list[sqlite3.Row]:
        return await self.database.read(lambda connection: connection.execute(query, values).fetchall())


def bank_entries(database: Database, bank: str) -> list[Entry]:
    """The newest version of every entry of a bank, for code without an event loop."""
    with database.reading() as connection:
        return _read(connection, bank)


def _find(entries: Sequence[Entry], bank: str, wanted: str) -> Entry:
    matches = [e for e in entries if e.id == wanted] or [e for e in entries if e.id.startswith(wanted)]
    if len(matches) == 1:
        return matches[0]
    several = ", ".join(entry.id for entry in matches[:5])
    problem = f"{wanted!r} matches {several}" if matches else f"no entry {wanted!r}"
    raise UsageError(f"bank {bank!r}: {problem}; heedful bank ls --bank {bank} lists its entries")


def _read(connection: sqlite3.Connection, bank: str) -> list[Entry]:
    return [_entry(row) for row in connection.execute(_CURRENT, (bank,)).fetchall()]


def _entry(row: sqlite3.Row) -> Entry:
    return Entry(
        id=row["id"],
        kind=row["kind"],
        text=row["text"],
        response=row["response"],
        tags=tuple(json.loads(row["tags"])),
        source=row["source"],
        state=row["state"],
        reason=row["reason"],
        scope=json.loads(row["scope"]),
        valid_from=row["valid_from"],
        valid_until=row["valid_until"],
    )


def _put(connection: sqlite3.Connection, bank: str, entries: Sequence[Entry]) -> int:
    current = {entry.id: entry for entry in _read(connection, bank)}
    new = 0
    for entry in entries:
        known = current.get(entry.id)
        if known is None or known.digest != entry.digest:
            _append(connection, bank, entry)
            new += 1
        if known is None and entry.state != "active":
            _log_state(connection, bank, entry.id, entry.state, entry.reason)
        current[entry.id] = entry
    return new


def _append(connection: sqlite3.Connection, bank: str, entry: Entry) -> None:
    tags = json.dumps(list(entry.tags), ensure_ascii=False)
    scope = json.dumps(dict(entry.scope), ensure_ascii=False)
    connection.execute(
        "INSERT INTO entries (at, bank, id, digest, kind, text, response, tags, source, "
        "scope, valid_from, valid_until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(time.time(), bank, entry.id, entry.digest),
            *(entry.kind, entry.text, entry.response, tags, entry.source),
            *(scope, entry.valid_from, entry.valid_until),
        ),
    )


def _mark(connection: sqlite3.Connection, bank: str, mark: Mark) -> Entry:
    known = _find(_read(connection, bank), bank, mark.entry)
    if mark.state in ("quarantined", "retired") and known.state == "protected":
        raise UsageError(f"entry {known.id!r} is protected; run heedful bank restore {known.id} first")
    if mark.state == known.state and mark.reason in ("", known.reason):
        return known
    _log_state(connection, bank, known.id, mark.state, mark.reason)
    return replace(known, state=mark.state, reason=mark.reason)


def _log_state(connection: sqlite3.Connection, bank: str, entry: str, state: State, reason: str) -> None:
    connection.execute(
        "INSERT INTO states (at, bank, id, state, reason) VALUES (?, ?, ?, ?, ?)",
        (time.time(), bank, entry, state, reason),
    )
