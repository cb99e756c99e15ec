"""Decisions in SQLite."""

import json
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from heedful.decisions import decision_fields, read_decision
from heedful.errors import UsageError
from heedful.memory.database import Database
from heedful.memory.purge import forget_decisions
from heedful.records import Decision
from heedful.types import Trial

_NEWEST = "SELECT record FROM decisions ORDER BY at DESC, rowid DESC LIMIT ?"
_BY_ID = "SELECT record FROM decisions WHERE substr(id, 1, ?) = ? LIMIT 2"
_PURGED = "SELECT at FROM tombstones WHERE kind = 'decision' AND id = ?"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFilter:
    """Which decisions to read; None: whatever it is."""

    since: float | None = None
    """Seconds since 1970."""
    until: float | None = None
    route: Literal["keep", "consult"] | None = None
    verdict: Literal["accept", "rollback"] | None = None
    bank: str | None = None
    entry: str | None = None
    user: str | None = None
    """The value of `user` in the task's scope."""
    graded: bool | None = None
    """Whether somebody gave feedback."""

    def where(self) -> tuple[str, list[object]]:
        """The condition in SQL, and its values."""
        graded = "EXISTS (SELECT 1 FROM feedback WHERE decision = id)"
        terms: list[tuple[str, object]] = [
            ("at >= ?", self.since),
            ("at < ?", self.until),
            ("json_extract(record, '$.route.choice') = ?", self.route),
            ("json_extract(record, '$.verdict.choice') = ?", self.verdict),
            (_SOME.format(root="'$.sources'", key="bank"), self.bank),
            (_SOME.format(root="'$'", key="entry"), self.entry),
            ("json_extract(record, '$.task.scope.user') = ?", self.user),
            (f"({graded}) = ?", None if self.graded is None else int(self.graded)),
        ]
        used = [(term, value) for term, value in terms if value is not None]
        return " AND ".join(["1", *(term for term, _ in used)]), [value for _, value in used]


_SOME = "EXISTS (SELECT 1 FROM json_tree(record, {root}) WHERE key = '{key}' AND atom = ?)"


@dataclass(frozen=True, slots=True)
class SqliteJournal:
    """Stores decisions; a decision is on disk when `record` returns."""

    database: Database

    async def announce(self, decision: str, trial: Trial) -> None:
        row = (decision, time.time(), trial.share, int(trial.allowed))
        statement = "INSERT INTO trials (decision, at, share, allowed) VALUES (?, ?, ?, ?)"
        await self.database.write(lambda connection: connection.execute(statement, row))

    async def record(self, decision: Decision) -> None:
        row = (decision.id, decision.at, json.dumps(decision_fields(decision), ensure_ascii=False))
        statement = "INSERT INTO decisions (id, at, record) VALUES (?, ?, ?)"
        await self.database.write(lambda connection: connection.execute(statement, row))

    async def find(self, decision: str) -> Decision:
        query, values = (_NEWEST, (1,)) if decision == "last" else (_BY_ID, (len(decision), decision))
        matches = await self._decisions(query, values)
        if len(matches) == 1:
            return matches[0]
        purged = await self.database.read(lambda c: c.execute(_PURGED, (decision,)).fetchone())
        if purged is not None:
            day = time.strftime("%Y-%m-%d", time.localtime(purged["at"]))
            raise UsageError(f"decision {decision!r} was purged on {day}: only its digest is left")
        problem = "matches several decisions; give a longer id" if matches else "is not a recorded decision"
        raise UsageError(f"{decision!r} {problem}; heedful ask prints the id of each decision")

    async def recent(self, limit: int) -> Sequence[Decision]:
        return await self._decisions(_NEWEST, (limit,))

    async def select(self, wanted: DecisionFilter, limit: int | None = None) -> Sequence[Decision]:
        """The decisions that pass a filter, newest first."""
        where, values = wanted.where()
        query = f"SELECT record FROM decisions WHERE {where} ORDER BY at DESC, rowid DESC LIMIT ?"
        return await self._decisions(query, (*values, -1 if limit is None else limit))

    async def announced(self) -> int:
        """How many trials were begun; those without a decision were interrupted."""
        query = "SELECT count(*) FROM trials"
        return int((await self.database.read(lambda c: c.execute(query).fetchone()))[0])

    async def purge(self, before: float) -> int:
        def forget(connection: sqlite3.Connection) -> int:
            rows = connection.execute("SELECT id FROM decisions WHERE at < ?", (before,)).fetchall()
            return forget_decisions(connection, [row["id"] for row in rows])

        return await self.database.write(forget)

    async def aclose(self) -> None:
        self.database.close()

    async def _decisions(self, query: str, values: tuple[object, ...]) -> list[Decision]:
        rows = await self.database.read(lambda connection: connection.execute(query, values).fetchall())
        return [read_decision(json.loads(row["record"])) for row in rows]
