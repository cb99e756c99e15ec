"""Decisions in SQLite."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from heedful.decisions import decision_fields, read_decision
from heedful.errors import UsageError
from heedful.memory.database import Database
from heedful.records import Decision

_NEWEST = "SELECT record FROM decisions ORDER BY at DESC, rowid DESC LIMIT ?"
_BY_ID = "SELECT record FROM decisions WHERE substr(id, 1, ?) = ? LIMIT 2"


@dataclass(frozen=True, slots=True)
class SqliteJournal:
    """Stores decisions; a decision is on disk when `record` returns."""

    database: Database

    async def record(self, decision: Decision) -> None:
        row = (decision.id, decision.at, json.dumps(decision_fields(decision), ensure_ascii=False))
        statement = "INSERT INTO decisions (id, at, record) VALUES (?, ?, ?)"
        await self.database.write(lambda connection: connection.execute(statement, row))

    async def find(self, decision: str) -> Decision:
        query, values = (_NEWEST, (1,)) if decision == "last" else (_BY_ID, (len(decision), decision))
        matches = await self._decisions(query, values)
        if len(matches) == 1:
            return matches[0]
        problem = "matches several decisions; give a longer id" if matches else "is not a recorded decision"
        raise UsageError(f"{decision!r} {problem}; heedful ask prints the id of each decision")

    async def recent(self, limit: int) -> Sequence[Decision]:
        return await self._decisions(_NEWEST, (limit,))

    async def purge(self, before: float) -> int:
        statement = "DELETE FROM decisions WHERE at < ?"
        return await self.database.write(lambda connection: connection.execute(statement, (before,)).rowcount)

    async def aclose(self) -> None:
        self.database.close()

    async def _decisions(self, query: str, values: tuple[object, ...]) -> list[Decision]:
        rows = await self.database.read(lambda connection: connection.execute(query, values).fetchall())
        return [read_decision(json.loads(row["record"])) for row in rows]
