"""Banks in Postgres: versions and states are appended, and one row per entry points to the newest."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from heedful.errors import StoreError
from heedful.memory.entries import distinct_ids, refuse_bank_name
from heedful.memory.postgres.database import PostgresDatabase
from heedful.memory.postgres.driver import Connection
from heedful.memory.postgres.feed import ChangeFeed
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
    from heedful.memory.index import Embedder, TextVectors
    from heedful.memory.postgres.feedback import PostgresFeedback
    from heedful.memory.postgres.journal import PostgresJournal
    from heedful.memory.postgres.recall import PostgresBank
    from heedful.memory.postgres.vectors import PostgresVectors
    from heedful.memory.purge import PurgeCount, PurgeOrder
    from heedful.memory.vectors import OnVectors

CHANNEL = "heedful"
"""Every change of a bank is announced here with the bank's name."""
CURRENT = """
SELECT e.*, h.state, h.reason FROM heads h JOIN entries e USING (seq) WHERE h.bank = %s AND NOT h.purged
"""
_VERSIONS = """
SELECT *, 'active' AS state, '' AS reason FROM entries
WHERE bank = %s AND id = %s AND purged IS NULL ORDER BY seq
"""
_AUDIT = """
SELECT at, id, lag(state, 1, 'active') OVER (PARTITION BY id ORDER BY seq) AS before, state, reason, actor,
    grounds
FROM states WHERE bank = %s ORDER BY seq
"""
_EVIDENCE = "SELECT entry, version, task, utility, decision FROM evidence WHERE bank = %s ORDER BY seq"
_APPEND = f"""
WITH new AS (
    INSERT INTO entries ({", ".join(ENTRY_COLUMNS)}) VALUES ({", ".join(["%s"] * len(ENTRY_COLUMNS))})
    RETURNING seq, bank, id, valid_from, valid_until
)
INSERT INTO heads (bank, id, seq, place, state, reason, scope, valid_from, valid_until, purged)
SELECT bank, id, seq, seq, 'active', '', %s, valid_from, valid_until, false FROM new
ON CONFLICT (bank, id) DO UPDATE SET seq = excluded.seq, scope = excluded.scope,
    valid_from = excluded.valid_from, valid_until = excluded.valid_until, purged = false, vector = NULL
"""


@dataclass(frozen=True, slots=True)
class PostgresStore:
    """Stores banks and their evidence; servers on the same database see each other's writes."""

    database: PostgresDatabase
    feed: ChangeFeed = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "feed", ChangeFeed(self.database, CHANNEL))

    @property
    def location(self) -> str:
        return self.database.shown

    @property
    def journal(self) -> "PostgresJournal":
        from heedful.memory.postgres.journal import PostgresJournal

        return PostgresJournal(self.database)

    @property
    def feedback(self) -> "PostgresFeedback":
        from heedful.memory.postgres.feedback import PostgresFeedback

        return PostgresFeedback(self.database)

    def changes(self, bank: str) -> int:
        """A number that becomes another one when any server changed the bank, or may have."""
        return self.feed.changes(channel_name(bank))

    async def put(self, bank: str, entries: Sequence[Entry]) -> int:
        """Add versions, all or none; an existing entry keeps its state, and gets a new version only if its
        content changed."""
        refuse_bank_name(bank)
        return await self.database.write(lambda connection: _put(connection, bank, entries))

    async def banks(self) -> Mapping[str, int]:
        query = "SELECT bank, count(*) AS n FROM heads WHERE NOT purged GROUP BY bank"
        return {row["bank"]: row["n"] for row in await self._rows(query)}

    async def revision(self, bank: str) -> int:
        query = "SELECT revision FROM banks WHERE bank = %s"
        rows = await self.database.read_soon(lambda connection: rows_of(connection, query, (bank,)))
        return int(rows[0]["revision"]) if rows else 0

    async def entries(self, bank: str) -> Sequence[Entry]:
        return [entry_of(row) for row in await self._rows(f"{CURRENT} ORDER BY h.place", bank)]

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
        return await self.database.write(lambda connection: _mark_all(connection, bank, marks))

    async def observe(self, bank: str, evidence: Sequence[Evidence]) -> None:
        values, statement = evidence_values(bank, evidence), insert("evidence", EVIDENCE_COLUMNS)

        async def write(connection: Connection) -> None:
            await connection.cursor().executemany(statement.encode(), values)

        await self.database.write(write)

    async def evidence(self, bank: str) -> Sequence[Evidence]:
        return [Evidence(**row) for row in await self._rows(_EVIDENCE, bank)]

    async def named(self, bank: str, ids: Sequence[str]) -> list[Entry]:
        """Those of the named entries that a bank has."""
        return await self.database.read(lambda connection: named(connection, bank, ids))

    async def purge(self, order: "PurgeOrder") -> "PurgeCount":
        """Delete texts; Postgres may reuse their space."""
        from heedful.memory.postgres.purge import purge

        return await purge(self.database, order)

    async def purge_count(self, order: "PurgeOrder") -> "PurgeCount":
        """What an order would delete."""
        from heedful.memory.postgres.purge import count

        return await count(self.database, order)

    async def ready(self) -> None:
        """Raise `StoreError` unless Postgres answers and can be written."""
        [row] = await self._rows("SELECT current_setting('transaction_read_only') AS read_only")
        if row["read_only"] == "on":
            raise StoreError(
                f"the store {self.location} can only be read, so no decision would be recorded: use the "
                "primary server with --store"
            )

    async def condition(self) -> str:
        """The versions of Postgres and pgvector."""
        [row] = await self._rows(
            "SELECT current_setting('server_version') AS postgres, extversion AS pgvector "
            "FROM pg_extension WHERE extname = 'vector'"
        )
        return f"Postgres {row['postgres'].split()[0]}, pgvector {row['pgvector']}"

    def vector_cache(self, on_progress: "OnVectors | None" = None) -> "PostgresVectors":
        from heedful.memory.postgres.vectors import PostgresVectors

        return PostgresVectors(self.database, on_progress)

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
    ) -> "PostgresBank | None":
        """The bank over pgvector's index, if it has more than `above` entries (docs/design/029)."""
        from heedful.memory.postgres.recall import open_large

        return open_large(
            *(self.database, name),
            threshold=threshold,
            embedder=embedder,
            above=above,
            on_progress=on_progress,
        )

    def reopened(self) -> "PostgresStore":
        """The same database with connections of its own."""
        return PostgresStore(PostgresDatabase(self.database.url, connections=2))

    async def aclose(self) -> None:
        self.database.close()

    async def _rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        return await self.database.read(lambda connection: rows_of(connection, query, values))


async def rows_of(connection: Connection, query: str, values: Sequence[Any]) -> list[dict[str, Any]]:
    """The rows of one statement."""
    return await (await connection.execute(query.encode(), values)).fetchall()


def insert(table: str, columns: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))})"


def scope_key(scope: Mapping[str, str]) -> str:
    """A scope as a text that is the same for equal scopes."""
    return json.dumps(dict(scope), ensure_ascii=False, sort_keys=True)


async def lock_bank(connection: Connection, bank: str) -> None:
    """Let one transaction at a time change a bank: revisions and row numbers then grow in commit order."""
    await connection.execute("INSERT INTO banks (bank) VALUES (%s) ON CONFLICT DO NOTHING", (bank,))
    await connection.execute("SELECT 1 FROM banks WHERE bank = %s FOR UPDATE", (bank,))


async def announce_change(connection: Connection, bank: str) -> None:
    """Increase the revision of a locked bank, and tell every server when the transaction is committed."""
    await connection.execute("UPDATE banks SET revision = revision + 1 WHERE bank = %s", (bank,))
    await connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, channel_name(bank)))


def channel_name(bank: str) -> str:
    """The bank in an announcement, whose size is limited."""
    return bank[:1000]


async def _put(connection: Connection, bank: str, entries: Sequence[Entry]) -> int:
    await lock_bank(connection, bank)
    entries = distinct_ids(await _known(connection, bank, entries), entries)
    steps = list(put_steps(await _known(connection, bank, entries), entries))
    if steps:
        rows = [(*entry_values(bank, step.entry), scope_key(step.entry.scope)) for step in steps]
        await connection.cursor().executemany(_APPEND.encode(), rows)
        await _log(connection, bank, [step.mark for step in steps if step.mark is not None])
        await announce_change(connection, bank)
    return len(steps)


async def _known(connection: Connection, bank: str, entries: Sequence[Entry]) -> dict[str, Entry]:
    """Those of the entries' ids that the bank has."""
    return {entry.id: entry for entry in await named(connection, bank, [entry.id for entry in entries])}


async def named(connection: Connection, bank: str, ids: Sequence[str]) -> list[Entry]:
    """Those of the named entries that a bank has."""
    return [entry_of(row) for row in await rows_of(connection, f"{CURRENT} AND h.id = ANY(%s)", (bank, ids))]


async def _find(connection: Connection, bank: str, wanted: str) -> Entry:
    matches = await named(connection, bank, [wanted])
    if not matches:
        query = f"{CURRENT} AND starts_with(h.id, %s) ORDER BY h.id LIMIT 6"
        matches = [entry_of(row) for row in await rows_of(connection, query, (bank, wanted))]
    return only_match(bank, wanted, matches)


async def _mark_all(connection: Connection, bank: str, marks: Sequence[Mark]) -> list[Entry]:
    await lock_bank(connection, bank)
    entries, changed = [], False
    for mark in marks:
        known = await _find(connection, bank, mark.entry)
        change = change_to_log(known, mark)
        if change is not None:
            await _log(connection, bank, [change])
            known, changed = replace(known, state=mark.state, reason=mark.reason), True
        entries.append(known)
    if changed:
        await announce_change(connection, bank)
    return entries


async def _log(connection: Connection, bank: str, marks: Sequence[Mark]) -> None:
    """Append to the log of states; the row of the entry follows in the same transaction."""
    cursor = connection.cursor()
    await cursor.executemany(
        insert("states", STATE_COLUMNS).encode(), [state_values(bank, mark) for mark in marks]
    )
    await cursor.executemany(
        "UPDATE heads SET state = %s, reason = %s WHERE bank = %s AND id = %s",
        [(mark.state, mark.reason, bank, mark.entry) for mark in marks],
    )


async def bank_digest(connection: Connection, bank: str) -> str:
    """The digest of a bank, without its texts."""
    query = "SELECT h.id, e.digest, h.state FROM heads h JOIN entries e USING (seq) WHERE h.bank = %s"
    rows = await rows_of(connection, f"{query} AND NOT h.purged", (bank,))
    return digest_of(sorted([row["id"], row["digest"], row["state"]] for row in rows))
