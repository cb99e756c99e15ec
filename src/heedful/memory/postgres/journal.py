"""Decisions in Postgres."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heedful.decisions import read_decision
from heedful.memory.journal import (
    FACTS,
    PURGED,
    TRAFFIC,
    RecordTerms,
    facts_of,
    only_decision,
    recalls_of,
    where_of,
)
from heedful.memory.postgres.database import PostgresDatabase
from heedful.memory.postgres.driver import Connection
from heedful.memory.postgres.facts import DECISION_COLUMNS, decision_columns, uses_of
from heedful.memory.postgres.purge import forget_decisions
from heedful.memory.postgres.store import insert, rows_of
from heedful.records import Decision, DecisionFacts, DecisionFilter, Traffic
from heedful.types import Trial

_NEWEST = "SELECT record FROM decisions ORDER BY at DESC, seq DESC LIMIT ?"
_BY_ID = "SELECT record FROM decisions WHERE id >= ? AND id < ? LIMIT 2"
_TERMS = RecordTerms(
    user="person = ?",
    caller="caller = ?",
    search="(question ILIKE ? ESCAPE '\\' OR answer ILIKE ? ESCAPE '\\')",
)


@dataclass(frozen=True, slots=True)
class PostgresJournal:
    """Stores decisions; a decision is durable when `record` returns, and the same one again changes
    nothing."""

    database: PostgresDatabase

    async def announce(self, decision: str, trial: Trial) -> None:
        row = (decision, time.time(), trial.share, int(trial.allowed))
        statement = insert("trials", ("decision", "at", "share", "allowed"))

        async def write(connection: Connection) -> None:
            await connection.execute(statement.encode(), row)

        await self.database.write(write)

    async def record(self, decision: Decision) -> None:
        await self.record_all([decision])

    async def record_all(self, decisions: Sequence[Decision]) -> None:
        """Store several decisions in one transaction."""
        rows = [decision_columns(decision) for decision in decisions]
        uses = [use for decision in decisions for use in uses_of(decision)]

        async def write(connection: Connection) -> None:
            await insert_decisions(connection, rows, uses)

        await self.database.write(write)

    async def find(self, decision: str) -> Decision:
        last = decision == "last"
        matches = await self._decisions(
            _NEWEST if last else _BY_ID, (1,) if last else (decision, f"{decision}\U0010ffff")
        )
        purged = None if matches else await self._rows(PURGED, (decision,))
        return only_decision(decision, matches, purged[0]["at"] if purged else None)

    async def recent(self, limit: int) -> Sequence[Decision]:
        return await self._decisions(_NEWEST, (limit,))

    async def select(
        self, wanted: DecisionFilter, limit: int | None = None, skip: int = 0
    ) -> Sequence[Decision]:
        where, values = where_of(wanted, _TERMS)
        query = f"SELECT record FROM decisions WHERE {where} ORDER BY at DESC, seq DESC LIMIT ? OFFSET ?"
        return await self._decisions(query, (*values, limit, skip))

    async def facts(self, wanted: DecisionFilter, limit: int) -> Sequence[DecisionFacts]:
        where, values = where_of(wanted, _TERMS)
        rows = await self._rows(FACTS.format(where=where), (*values, limit))
        return await asyncio.to_thread(lambda: [facts_of(list(row.values())) for row in rows])

    async def traffic(self, wanted: DecisionFilter) -> Sequence[Traffic]:
        where, values = where_of(wanted, _TERMS)
        return [Traffic(**row) for row in await self._rows(TRAFFIC.format(where=where), values)]

    async def recalls(self, bank: str, caller: str | None = None) -> Mapping[str, int]:
        query, values = recalls_of(bank, caller, _TERMS)
        return {row["entry"]: row["n"] for row in await self._rows(query, values)}

    async def announced(self) -> int:
        """How many trials were begun; those without a decision were interrupted."""
        return int((await self._rows("SELECT count(*) AS n FROM trials", ()))[0]["n"])

    async def purge(self, before: float) -> int:
        async def forget(connection: Connection) -> int:
            rows = await rows_of(connection, "SELECT id FROM decisions WHERE at < %s", (before,))
            return await forget_decisions(connection, [row["id"] for row in rows])

        return await self.database.write(forget)

    async def aclose(self) -> None:
        self.database.close()

    async def _decisions(self, query: str, values: Sequence[object]) -> list[Decision]:
        rows = await self._rows(query, values)
        return await asyncio.to_thread(lambda: [read_decision(json.loads(row["record"])) for row in rows])

    async def _rows(self, query: str, values: Sequence[object]) -> list[dict[str, Any]]:
        """The rows of a statement that SQLite would understand too."""
        statement = query.replace("?", "%s")
        return await self.database.read(lambda connection: rows_of(connection, statement, values))


async def insert_decisions(
    connection: Connection, rows: Sequence[tuple[object, ...]], uses: Sequence[tuple[str, str, str]]
) -> None:
    """Insert decisions that are not there yet, with the banks and entries that they used."""
    decided = f"{insert('decisions', DECISION_COLUMNS)} ON CONFLICT (id) DO NOTHING"
    used = f"{insert('uses', ('decision', 'bank', 'entry'))} ON CONFLICT DO NOTHING"
    async with connection.pipeline():
        await connection.cursor().executemany(decided.encode(), rows)
        await connection.cursor().executemany(used.encode(), uses)
