"""A SQLite store as a side of a move."""

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass

from heedful.memory.database import Database
from heedful.memory.moved_tables import MovedRow, MovedTable, page_query

_MOVES = (
    "CREATE TABLE IF NOT EXISTS moves (source TEXT PRIMARY KEY, at REAL NOT NULL, finished INTEGER NOT NULL)"
)


@dataclass(frozen=True, slots=True)
class SqliteSide:
    """Reads and writes the rows of a SQLite store."""

    database: Database

    @property
    def location(self) -> str:
        return str(self.database.path.absolute())

    async def rows(self, table: MovedTable, after: MovedRow | None, limit: int) -> list[MovedRow]:
        query = page_query(table, after, "?", _names(table))
        return [tuple(row) for row in await self._rows(query, *(after or ()), limit)]

    async def add(self, table: MovedTable, rows: Sequence[MovedRow]) -> None:
        names = _names(table)
        statement = (
            f"INSERT OR IGNORE INTO {table.name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        )

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany(statement, rows)

        await self.database.write(write)

    async def last(self, table: MovedTable) -> MovedRow | None:
        key = _names(table)[: len(table.key)]
        order = ", ".join(f"{name} DESC" for name in key)
        rows = await self._rows(f"SELECT {', '.join(key)} FROM {table.name} ORDER BY {order} LIMIT 1")
        return tuple(rows[0]) if rows else None

    async def count(self, table: MovedTable) -> int:
        return int((await self._rows(f"SELECT count(*) FROM {table.name}"))[0][0])

    async def begun(self, source: str) -> bool | None:
        if not await self._rows("SELECT 1 FROM sqlite_master WHERE name = 'moves'"):
            return None
        rows = await self._rows("SELECT finished FROM moves WHERE source = ?", source)
        return bool(rows[0]["finished"]) if rows else None

    async def note(self, source: str, *, finished: bool) -> None:
        def write(connection: sqlite3.Connection) -> None:
            connection.execute(_MOVES)
            connection.execute(
                "INSERT OR REPLACE INTO moves VALUES (?, ?, ?)", (source, time.time(), finished)
            )

        await self.database.write(write)

    async def _rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        return await self.database.read(lambda connection: connection.execute(query, values).fetchall())


def _names(table: MovedTable) -> list[str]:
    """The columns as SQLite calls them: decisions are in the order of their hidden row numbers."""
    return ["rowid" if table.name == "decisions" and name == "seq" else name for name in table.columns]
