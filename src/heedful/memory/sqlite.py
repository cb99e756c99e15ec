"""Banks in SQLite: versions are appended, states are a log, nothing is edited in place."""

import json
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from heedful.errors import UsageError
from heedful.memory.database import Database
from heedful.types import Entry, Evidence, State

_CURRENT = """
SELECT e.*, coalesce(s.state, 'active') AS state, coalesce(s.reason, '') AS reason
FROM entries e
LEFT JOIN states s ON s.seq = (SELECT max(seq) FROM states WHERE bank = e.bank AND id = e.id)
WHERE e.seq = (SELECT max(seq) FROM entries WHERE bank = e.bank AND id = e.id) AND e.bank = ?
"""


@dataclass(frozen=True, slots=True)
class SqliteStore:
    """Keeps banks and their evidence; what it acknowledged survives a crash."""

    database: Database

    def put(self, bank: str, entries: Sequence[Entry]) -> int:
        """Add versions, all or none; an entry that is there already keeps its state, and its version
        where the content is the same."""
        with self.database.writing() as connection:
            current = {entry.id: entry for entry in _read(connection, bank)}
            new = 0
            for entry in entries:
                known = current.get(entry.id)
                if known is None or known.digest != entry.digest:
                    _append(connection, bank, entry)
                    new += 1
                if known is None and entry.state != "active":
                    _mark(connection, bank, entry.id, entry.state, entry.reason)
                current[entry.id] = entry
        return new

    def banks(self) -> dict[str, int]:
        """Every bank with how many entries it has."""
        with self.database.reading() as connection:
            rows = connection.execute("SELECT bank, count(DISTINCT id) FROM entries GROUP BY bank")
            return dict(rows.fetchall())

    def entries(self, bank: str) -> Sequence[Entry]:
        """The newest version of every entry in the order in which they came."""
        with self.database.reading() as connection:
            return _read(connection, bank)

    def entry(self, bank: str, entry: str) -> Entry:
        """One entry by id, or by a beginning of it that no other shares."""
        entries = self.entries(bank)
        found = [e for e in entries if e.id == entry] or [e for e in entries if e.id.startswith(entry)]
        if len(found) == 1:
            return found[0]
        problem = (
            f"{entry!r} could be {', '.join(e.id for e in found[:5])}" if found else f"no entry {entry!r}"
        )
        raise UsageError(f"bank {bank!r}: {problem}; heedful bank ls --bank {bank} lists them")

    def version(self, bank: str, entry: str, digest: str) -> Entry:
        """A past or present version of an entry, by its digest."""
        for known in self.versions(bank, entry):
            if known.digest == digest:
                return known
        raise UsageError(f"bank {bank!r} has no version {digest[:12]} of entry {entry!r}")

    def versions(self, bank: str, entry: str) -> Sequence[Entry]:
        """Every version of an entry, oldest first."""
        with self.database.reading() as connection:
            rows = connection.execute(
                "SELECT *, 'active' AS state, '' AS reason FROM entries "
                "WHERE bank = ? AND id = ? ORDER BY seq",
                (bank, entry),
            )
            return [_entry(row) for row in rows.fetchall()]

    def history(self, bank: str, entry: str) -> list[tuple[float, State, str]]:
        """Every change of an entry's state: when, to what, why."""
        with self.database.reading() as connection:
            rows = connection.execute(
                "SELECT at, state, reason FROM states WHERE bank = ? AND id = ? ORDER BY seq", (bank, entry)
            )
            return [(at, state, reason) for at, state, reason in rows.fetchall()]

    def mark(self, bank: str, entry: str, state: State, reason: str) -> Entry:
        """Change an entry's state; a protected entry must be restored before it can be set aside."""
        return self.mark_all(bank, [(entry, state, reason)])[0]

    def mark_all(self, bank: str, marks: Sequence[tuple[str, State, str]]) -> list[Entry]:
        """Change the states of several entries (id, state, reason), all or none."""
        changed = []
        with self.database.writing() as connection:
            for entry, state, reason in marks:
                known = self.entry(bank, entry)
                if state in ("quarantined", "retired") and known.state == "protected":
                    raise UsageError(
                        f"entry {known.id!r} is protected; heedful bank restore {known.id} first"
                    )
                if state != known.state or reason not in ("", known.reason):
                    _mark(connection, bank, known.id, state, reason)
                    known = replace(known, state=state, reason=reason)
                changed.append(known)
        return changed

    def observe(self, bank: str, evidence: Sequence[Evidence]) -> None:
        """Keep evidence; it is on disk when this returns."""
        with self.database.writing() as connection:
            connection.executemany(
                "INSERT INTO evidence (at, bank, entry, version, task, utility, decision) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(time.time(), bank, e.entry, e.version, e.task, e.utility, e.decision) for e in evidence],
            )

    def evidence(self, bank: str) -> Sequence[Evidence]:
        with self.database.reading() as connection:
            rows = connection.execute(
                "SELECT * FROM evidence WHERE bank = ? ORDER BY seq", (bank,)
            ).fetchall()
        return [
            Evidence(
                entry=row["entry"],
                version=row["version"],
                task=row["task"],
                utility=row["utility"],
                decision=row["decision"],
            )
            for row in rows
        ]


def _read(connection: sqlite3.Connection, bank: str) -> list[Entry]:
    first_seen = " ORDER BY (SELECT min(seq) FROM entries WHERE bank = e.bank AND id = e.id)"
    return [_entry(row) for row in connection.execute(_CURRENT + first_seen, (bank,)).fetchall()]


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
    )


def _append(connection: sqlite3.Connection, bank: str, entry: Entry) -> None:
    connection.execute(
        "INSERT INTO entries (at, bank, id, digest, kind, text, response, tags, source) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            time.time(),
            bank,
            entry.id,
            entry.digest,
            entry.kind,
            entry.text,
            entry.response,
            json.dumps(list(entry.tags), ensure_ascii=False),
            entry.source,
        ),
    )


def _mark(connection: sqlite3.Connection, bank: str, entry: str, state: State, reason: str) -> None:
    connection.execute(
        "INSERT INTO states (at, bank, id, state, reason) VALUES (?, ?, ?, ?, ?)",
        (time.time(), bank, entry, state, reason),
    )
