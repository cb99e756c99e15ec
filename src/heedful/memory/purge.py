"""Delete texts for good, and keep a tombstone of each: its digest and the date."""

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from heedful.errors import StoreError, UsageError
from heedful.memory.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeCount:
    """What was deleted."""

    entries: int = 0
    decisions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeOrder:
    """What to delete; exactly one of entry with bank, bank, decision, user, or everything before a time."""

    bank: str = ""
    entry: str = ""
    decision: str = ""
    """An id, a unique id prefix, or `last`."""
    user: str = ""
    """Entries and decisions whose scope has this user."""
    before: float | None = None
    """Decisions made before this time, in seconds since 1970."""
    with_decisions: bool = False
    """Also delete the decisions that recalled a purged entry: their answers may quote it."""


def purge(database: Database, order: PurgeOrder) -> PurgeCount:
    """Delete the texts in one transaction, then rewrite the file so that no page keeps them."""
    with database.reading() as connection:
        connection.execute("PRAGMA secure_delete = ON")
    with database.writing() as connection:
        entries = _entries(connection, order)
        decisions = _decisions(connection, order, entries)
        texts = [text for bank, id in entries for text in _forget_entry(connection, bank, id)]
        forget_decisions(connection, decisions)
    from heedful.memory.vectors import forget_vectors  # it needs NumPy

    forget_vectors(database, texts)
    shred(database)
    return PurgeCount(entries=len(entries), decisions=len(decisions))


def count(database: Database, order: PurgeOrder) -> PurgeCount:
    """What an order would delete."""
    with database.reading() as connection:
        entries = _entries(connection, order)
        return PurgeCount(entries=len(entries), decisions=len(_decisions(connection, order, entries)))


def shred(database: Database) -> None:
    """Rewrite the file and empty its write-ahead log, so that deleted texts are in neither."""
    with database.reading() as connection:
        connection.execute("VACUUM")
        (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise StoreError(
            f"the texts are deleted, but another process still reads {database.path}, so its log may hold "
            "them: end that process and run the same command again"
        )


def forget_decisions(connection: sqlite3.Connection, ids: Sequence[str]) -> int:
    """Replace decisions by tombstones; evidence stays, and a known answer leaves only its grades."""
    for id in ids:
        row = connection.execute("SELECT record FROM decisions WHERE id = ?", (id,)).fetchone()
        _bury(connection, "decision", "", id, sha256(row["record"].encode()).hexdigest())
        connection.execute("DELETE FROM decisions WHERE id = ?", (id,))
        connection.execute("UPDATE feedback SET value = '' WHERE decision = ? AND kind = 'answer'", (id,))
    return len(ids)


def _entries(connection: sqlite3.Connection, order: PurgeOrder) -> list[tuple[str, str]]:
    """Bank and id of every entry to delete; all its versions go."""
    alive = "SELECT DISTINCT bank, id FROM entries WHERE purged IS NULL"
    if order.user:
        query, values = f"{alive} AND json_extract(scope, '$.user') = ?", [order.user]
    elif order.entry:
        query, values = f"{alive} AND bank = ? AND id = ?", [order.bank, order.entry]
    elif order.bank:
        query, values = f"{alive} AND bank = ?", [order.bank]
    else:
        return []
    rows = connection.execute(query, values).fetchall()
    return entries_to_purge(order, [(row["bank"], row["id"]) for row in rows])


def entries_to_purge(order: PurgeOrder, found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Bank and id of the entries; an order that names them must match some."""
    if not found and not order.user:
        what = f"entry {order.entry!r} in bank {order.bank!r}" if order.entry else f"bank {order.bank!r}"
        raise UsageError(f"there is no {what} to purge; heedful bank ls lists banks and entries")
    return found


def _decisions(
    connection: sqlite3.Connection, order: PurgeOrder, entries: Sequence[tuple[str, str]]
) -> list[str]:
    ids: list[str] = []
    for term, value in (
        ("id = ?", _decision_id(connection, order.decision) if order.decision else None),
        ("json_extract(record, '$.task.scope.user') = ?", order.user or None),
        ("at < ?", order.before),
    ):
        if value is not None:
            rows = connection.execute(f"SELECT id FROM decisions WHERE {term}", (value,)).fetchall()
            ids += [row["id"] for row in rows]
    if order.user or order.with_decisions:
        ids += _recalling(connection, entries)
    return list(dict.fromkeys(ids))


def _decision_id(connection: sqlite3.Connection, wanted: str) -> str:
    """The decision with this id or unique id prefix, or the `last` one; its record is not read."""
    values: tuple[object, ...] = ()
    if wanted == "last":
        query = "SELECT id FROM decisions ORDER BY at DESC, rowid DESC LIMIT 1"
    else:
        query, values = "SELECT id FROM decisions WHERE substr(id, 1, ?) = ?", (len(wanted), wanted)
    return decision_to_purge(wanted, [row["id"] for row in connection.execute(query, values)])


def decision_to_purge(wanted: str, found: Sequence[str]) -> str:
    """The single decision that an id or id prefix matches."""
    if wanted not in found and len(found) != 1:
        problem = "matches several decisions; give a longer id" if found else "is not a recorded decision"
        raise UsageError(f"{wanted!r} {problem}; heedful decisions ls lists them")
    return wanted if wanted in found else found[0]


def _recalling(connection: sqlite3.Connection, entries: Sequence[tuple[str, str]]) -> list[str]:
    """The decisions that recalled one of these entries."""
    query = "SELECT decision FROM uses WHERE bank = ? AND entry = ?"
    return [row["decision"] for pair in entries for row in connection.execute(query, pair)]


def _forget_entry(connection: sqlite3.Connection, bank: str, id: str) -> list[str]:
    """Blank every version of an entry; its rows stay, so that revisions and digests remain.

    Returns the texts that no other entry has.
    """
    at, orphans = time.time(), []
    rows = connection.execute(
        "SELECT text, digest FROM entries WHERE bank = ? AND id = ? AND purged IS NULL", (bank, id)
    ).fetchall()
    for row in rows:
        _bury(connection, "entry", bank, id, row["digest"])
        key = sha256(row["text"].encode()).hexdigest()
        others = "SELECT 1 FROM entries WHERE text = ? AND NOT (bank = ? AND id = ?) LIMIT 1"
        if connection.execute(others, (row["text"], bank, id)).fetchone() is None:
            connection.execute("DELETE FROM vectors WHERE text = ?", (key,))
            orphans.append(row["text"])
    connection.execute(
        "UPDATE entries SET text = '', response = '', tags = '[]', source = '', scope = '{}', purged = ? "
        "WHERE bank = ? AND id = ?",
        (at, bank, id),
    )
    connection.execute(  # a reason quotes the entry, and a group names its author
        "UPDATE states SET reason = '', grounds = 'null' WHERE bank = ? AND id = ?", (bank, id)
    )
    connection.execute(
        "INSERT INTO states (at, bank, id, state, reason, actor) "
        "VALUES (?, ?, ?, 'retired', 'purged', 'purge')",
        (at, bank, id),
    )
    return orphans


def _bury(connection: sqlite3.Connection, kind: str, bank: str, id: str, digest: str) -> None:
    connection.execute(
        "INSERT INTO tombstones (at, kind, bank, id, digest) VALUES (?, ?, ?, ?, ?)",
        (time.time(), kind, bank, id, digest),
    )
