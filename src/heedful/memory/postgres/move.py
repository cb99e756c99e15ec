"""A Postgres store as a side of a move."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from heedful.decisions import read_decision
from heedful.memory.moved_tables import TABLES, MovedRow, MovedTable, page_query
from heedful.memory.postgres.database import PostgresDatabase
from heedful.memory.postgres.driver import Connection
from heedful.memory.postgres.facts import DECISION_COLUMNS, decision_columns, uses_of
from heedful.memory.postgres.store import insert, rows_of, scope_key

_HEAD = """
INSERT INTO heads (bank, id, seq, place, state, reason, scope, valid_from, valid_until, purged)
VALUES (%(bank)s, %(id)s, %(seq)s, %(seq)s, 'active', '', %(scope)s, %(valid_from)s, %(valid_until)s,
    %(purged)s)
ON CONFLICT (bank, id) DO UPDATE SET seq = excluded.seq, scope = excluded.scope,
    valid_from = excluded.valid_from, valid_until = excluded.valid_until, purged = excluded.purged
"""
_STATE = "UPDATE heads SET state = %(state)s, reason = %(reason)s WHERE bank = %(bank)s AND id = %(id)s"
_REVISIONS = """
INSERT INTO banks (bank, revision)
SELECT bank, max(seq) + coalesce((SELECT max(seq) FROM states s WHERE s.bank = e.bank), 0) FROM entries e
GROUP BY bank ON CONFLICT DO NOTHING
"""
_NOTE = """
INSERT INTO moves VALUES (%s, %s, %s) ON CONFLICT (source) DO UPDATE SET finished = excluded.finished
"""


@dataclass(frozen=True, slots=True)
class PostgresSide:
    """Reads and writes the rows of a Postgres store."""

    database: PostgresDatabase

    @property
    def location(self) -> str:
        return self.database.shown

    async def rows(self, table: MovedTable, after: MovedRow | None, limit: int) -> list[MovedRow]:
        query = page_query(table, after, "%s", table.columns)
        return [tuple(row.values()) for row in await self._rows(query, *(after or ()), limit)]

    async def add(self, table: MovedTable, rows: Sequence[MovedRow]) -> None:
        async def write(connection: Connection) -> None:
            cursor = connection.cursor()
            for statement, values in _statements(table, rows):
                if values:
                    await cursor.executemany(statement.encode(), values)

        await self.database.write(write)

    async def last(self, table: MovedTable) -> MovedRow | None:
        order = ", ".join(f"{name} DESC" for name in table.key)
        rows = await self._rows(f"SELECT {', '.join(table.key)} FROM {table.name} ORDER BY {order} LIMIT 1")
        return tuple(rows[0].values()) if rows else None

    async def count(self, table: MovedTable) -> int:
        return int((await self._rows(f"SELECT count(*) AS n FROM {table.name}"))[0]["n"])

    async def begun(self, source: str) -> bool | None:
        rows = await self._rows("SELECT finished FROM moves WHERE source = %s", source)
        return bool(rows[0]["finished"]) if rows else None

    async def note(self, source: str, *, finished: bool) -> None:
        async def write(connection: Connection) -> None:
            await connection.execute(_NOTE, (source, time.time(), finished))
            if finished:
                await _settle(connection)

        await self.database.write(write)

    async def _rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        return await self.database.read(lambda connection: rows_of(connection, query, values))


def _statements(table: MovedTable, rows: Sequence[MovedRow]) -> list[tuple[str, Sequence[Any]]]:
    """What to run for each row: it is inserted, and what Postgres derives from it follows."""
    named: list[dict[str, Any]] = [dict(zip(table.columns, row, strict=True)) for row in rows]
    if table.name == "decisions":
        return _decision_statements(named)
    statements: list[tuple[str, Sequence[Any]]] = [
        (f"{insert(table.name, table.columns)} ON CONFLICT DO NOTHING", rows)
    ]
    if table.name == "entries":
        heads = [
            {**row, "scope": scope_key(json.loads(row["scope"])), "purged": row["purged"] is not None}
            for row in named
        ]
        statements.append((_HEAD, heads))
    if table.name == "states":
        statements.append((_STATE, named))
    return statements


def _decision_statements(rows: Sequence[dict[str, Any]]) -> list[tuple[str, Sequence[Any]]]:
    """A decision keeps its record to the last character."""
    decisions = [read_decision(json.loads(row["record"])) for row in rows]
    values = [
        (row["seq"], row["id"], row["at"], row["record"], *decision_columns(decision)[3:])
        for row, decision in zip(rows, decisions, strict=True)
    ]
    uses = [use for decision in decisions for use in uses_of(decision)]
    return [
        (f"{insert('decisions', ('seq', *DECISION_COLUMNS))} ON CONFLICT DO NOTHING", values),
        (f"{insert('uses', ('decision', 'bank', 'entry'))} ON CONFLICT DO NOTHING", uses),
    ]


async def _settle(connection: Connection) -> None:
    """Give banks their revisions, and let new rows be numbered after the moved ones."""
    await connection.execute(_REVISIONS)
    for table in TABLES:
        if table.key == ("seq",):
            await connection.execute(
                f"SELECT setval(pg_get_serial_sequence('{table.name}', 'seq'), "
                f"greatest((SELECT max(seq) FROM {table.name}), 1))".encode()
            )
