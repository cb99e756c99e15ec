"""Delete texts from Postgres, and keep a tombstone of each: its digest and the date."""

import time
from collections.abc import Sequence
from hashlib import sha256

from heedful.memory.postgres.database import PostgresDatabase
from heedful.memory.postgres.driver import Connection
from heedful.memory.postgres.store import announce_change, insert, lock_bank, rows_of
from heedful.memory.purge import PurgeCount, PurgeOrder, decision_to_purge, entries_to_purge

_TOMBSTONE = insert("tombstones", ("at", "kind", "bank", "id", "digest"))
_BLANK = """
UPDATE entries SET text = '', response = '', tags = '[]', source = '', scope = '{}', purged = %s
WHERE bank = %s AND id = %s
"""
_ORPHANS = """
DELETE FROM vectors v USING unnest(%s::bytea[]) AS gone (key)
WHERE v.text = gone.key
  AND NOT EXISTS (SELECT 1 FROM entries e WHERE sha256(convert_to(e.text, 'UTF8')) = gone.key)
"""


async def purge(database: PostgresDatabase, order: PurgeOrder) -> PurgeCount:
    """Delete the texts in one transaction, then let Postgres reuse their space."""

    async def delete(connection: Connection) -> PurgeCount:
        await connection.execute("LOCK TABLE feedback IN SHARE ROW EXCLUSIVE MODE")
        entries = await _entries(connection, order)
        decisions = await _decisions(connection, order, entries)
        for bank in sorted({bank for bank, _ in entries}):
            await lock_bank(connection, bank)
        keys = [key for bank, id in entries for key in await _forget_entry(connection, bank, id)]
        if keys:
            await connection.execute(_ORPHANS, (keys,))
        for bank in sorted({bank for bank, _ in entries}):
            await announce_change(connection, bank)
        await forget_decisions(connection, decisions)
        return PurgeCount(entries=len(entries), decisions=len(decisions))

    async def vacuum(connection: Connection) -> None:
        await connection.execute("VACUUM entries, states, heads, decisions, uses, feedback, vectors")

    done = await database.write(delete)
    await database.read(vacuum)
    return done


async def count(database: PostgresDatabase, order: PurgeOrder) -> PurgeCount:
    """What an order would delete."""

    async def counted(connection: Connection) -> PurgeCount:
        entries = await _entries(connection, order)
        return PurgeCount(entries=len(entries), decisions=len(await _decisions(connection, order, entries)))

    return await database.read(counted)


async def forget_decisions(connection: Connection, ids: Sequence[str]) -> int:
    """Replace decisions by tombstones; evidence stays, and a known answer leaves only its grades."""
    rows = await rows_of(
        connection, "DELETE FROM decisions WHERE id = ANY(%s) RETURNING id, record", (list(ids),)
    )
    buried = [
        (time.time(), "decision", "", row["id"], sha256(row["record"].encode()).hexdigest()) for row in rows
    ]
    await connection.cursor().executemany(_TOMBSTONE.encode(), buried)
    await connection.execute("DELETE FROM uses WHERE decision = ANY(%s)", (list(ids),))
    await connection.execute(
        "UPDATE feedback SET value = '' WHERE decision = ANY(%s) AND kind = 'answer'", (list(ids),)
    )
    return len(rows)


async def _entries(connection: Connection, order: PurgeOrder) -> list[tuple[str, str]]:
    """Bank and id of every entry to delete; all its versions go."""
    alive = "SELECT DISTINCT bank, id FROM entries WHERE purged IS NULL"
    if order.user:
        query, values = f"{alive} AND scope::json ->> 'user' = %s", [order.user]
    elif order.entry:
        query, values = f"{alive} AND bank = %s AND id = %s", [order.bank, order.entry]
    elif order.bank:
        query, values = f"{alive} AND bank = %s", [order.bank]
    else:
        return []
    rows = await rows_of(connection, query, values)
    return entries_to_purge(order, [(row["bank"], row["id"]) for row in rows])


async def _decisions(
    connection: Connection, order: PurgeOrder, entries: Sequence[tuple[str, str]]
) -> list[str]:
    ids: list[str] = []
    if order.decision:
        ids.append(await _decision_id(connection, order.decision))
    for term, value in (("person = %s", order.user or None), ("at < %s", order.before)):
        if value is not None:
            rows = await rows_of(connection, f"SELECT id FROM decisions WHERE {term}", (value,))
            ids += [row["id"] for row in rows]
    if order.user or order.with_decisions:
        query = "SELECT decision FROM uses WHERE bank = %s AND entry = %s"
        ids += [row["decision"] for pair in entries for row in await rows_of(connection, query, pair)]
    return list(dict.fromkeys(ids))


async def _decision_id(connection: Connection, wanted: str) -> str:
    """The decision with this id or unique id prefix, or the `last` one; its record is not read."""
    if wanted == "last":
        rows = await rows_of(connection, "SELECT id FROM decisions ORDER BY at DESC, seq DESC LIMIT 1", ())
    else:
        rows = await rows_of(connection, "SELECT id FROM decisions WHERE starts_with(id, %s)", (wanted,))
    return decision_to_purge(wanted, [row["id"] for row in rows])


async def _forget_entry(connection: Connection, bank: str, id: str) -> list[bytes]:
    """Blank every version of an entry; its rows stay, so that revisions and digests remain.

    Returns the keys under which vectors of its texts are stored.
    """
    at, pair = time.time(), (bank, id)
    query = "SELECT text, digest FROM entries WHERE bank = %s AND id = %s AND purged IS NULL"
    rows = await rows_of(connection, query, pair)
    buried = [(at, "entry", bank, id, row["digest"]) for row in rows]
    await connection.cursor().executemany(_TOMBSTONE.encode(), buried)
    await connection.execute(_BLANK, (at, *pair))
    await connection.execute(  # a reason quotes the entry, and a group names its author
        "UPDATE states SET reason = '', grounds = 'null' WHERE bank = %s AND id = %s", pair
    )
    await connection.execute(
        "INSERT INTO states (at, bank, id, state, reason, actor, grounds) "
        "VALUES (%s, %s, %s, 'retired', 'purged', 'purge', 'null')",
        (at, *pair),
    )
    await connection.execute(
        "UPDATE heads SET state = 'retired', reason = 'purged', scope = '{}', purged = true, vector = NULL "
        "WHERE bank = %s AND id = %s",
        pair,
    )
    return [sha256(row["text"].encode()).digest() for row in rows]
