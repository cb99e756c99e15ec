"""Decisions in SQLite."""

import asyncio
import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import msgspec

from heedful.decisions import decision_fields, read_decision
from heedful.errors import UsageError
from heedful.memory.database import Database
from heedful.memory.purge import forget_decisions
from heedful.records import Decision, DecisionFacts, DecisionFilter, Traffic
from heedful.types import CALLER, Trial

_NEWEST = "SELECT record FROM decisions ORDER BY at DESC, rowid DESC LIMIT ?"
_BY_ID = "SELECT record FROM decisions WHERE id >= ?1 AND id < ?1 || char(1114111) LIMIT 2"
PURGED = "SELECT at FROM tombstones WHERE kind = 'decision' AND id = ?"
FACTS = """
SELECT d.*, a.grades, g.value AS grade, p.value AS preference FROM (
    SELECT id, at, route, verdict, chosen, confidence, net_value, seconds, policy, memory_first,
        memory_chosen, unchanged
    FROM decisions WHERE {where} ORDER BY at DESC LIMIT ?
) d
LEFT JOIN feedback a ON a.decision = d.id AND a.kind = 'answer'
LEFT JOIN feedback g ON g.decision = d.id AND g.kind = 'grade'
LEFT JOIN feedback p ON p.decision = d.id AND p.kind = 'preference'
ORDER BY d.at DESC
"""
TRAFFIC = """
SELECT route, verdict, count(*) AS decisions, sum(calls) AS calls, sum(tokens) AS tokens,
    sum(CASE WHEN faults > 0 THEN 1 ELSE 0 END) AS faulty
FROM decisions WHERE {where} GROUP BY route, verdict ORDER BY route, verdict NULLS FIRST
"""


@dataclass(frozen=True, slots=True)
class SqliteJournal:
    """Stores decisions; a decision is on disk when `record` returns."""

    database: Database

    async def announce(self, decision: str, trial: Trial) -> None:
        row = (decision, time.time(), trial.share, int(trial.allowed))
        statement = "INSERT INTO trials (decision, at, share, allowed) VALUES (?, ?, ?, ?)"
        await self.database.insert(statement, [row])

    async def record(self, decision: Decision) -> None:
        await self.record_all([decision])

    async def record_all(self, decisions: Sequence[Decision]) -> None:
        """Store several decisions in one transaction; those that are stored already are left as they are."""
        statement = "INSERT OR IGNORE INTO decisions (id, at, record) VALUES (?, ?, ?)"
        await self.database.insert(statement, map(decision_values, decisions))

    async def find(self, decision: str) -> Decision:
        query, values = (_NEWEST, (1,)) if decision == "last" else (_BY_ID, (decision,))
        matches = await self._decisions(query, values)
        purged = None if matches else await self._rows(PURGED, (decision,))
        return only_decision(decision, matches, purged[0]["at"] if purged else None)

    async def recent(self, limit: int) -> Sequence[Decision]:
        return await self._decisions(_NEWEST, (limit,))

    async def select(
        self, wanted: DecisionFilter, limit: int | None = None, skip: int = 0
    ) -> Sequence[Decision]:
        where, values = where_of(wanted)
        query = f"SELECT record FROM decisions WHERE {where} ORDER BY at DESC, rowid DESC LIMIT ? OFFSET ?"
        return await self._decisions(query, (*values, -1 if limit is None else limit, skip))

    async def facts(self, wanted: DecisionFilter, limit: int) -> Sequence[DecisionFacts]:
        where, values = where_of(wanted)
        rows = await self._rows(FACTS.format(where=where), (*values, limit))
        return await asyncio.to_thread(lambda: [facts_of(row) for row in rows])

    async def traffic(self, wanted: DecisionFilter) -> Sequence[Traffic]:
        where, values = where_of(wanted)
        return [Traffic(**dict(row)) for row in await self._rows(TRAFFIC.format(where=where), values)]

    async def recalls(self, bank: str, caller: str | None = None) -> Mapping[str, int]:
        query, values = recalls_of(bank, caller, SQLITE_TERMS)
        return {row["entry"]: row["n"] for row in await self._rows(query, values)}

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
        rows = await self._rows(query, values)
        return await asyncio.to_thread(lambda: [read_decision(json.loads(row["record"])) for row in rows])

    async def _rows(self, query: str, values: Sequence[object]) -> list[sqlite3.Row]:
        return await self.database.read(lambda connection: connection.execute(query, values).fetchall())


def only_decision(wanted: str, matches: Sequence[Decision], purged_at: float | None) -> Decision:
    """The single decision that an id or id prefix matches."""
    if len(matches) == 1:
        return matches[0]
    if purged_at is not None:
        day = time.strftime("%Y-%m-%d", time.localtime(purged_at))
        raise UsageError(f"decision {wanted!r} was purged on {day}: only its digest is left")
    problem = "matches several decisions; give a longer id" if matches else "is not a recorded decision"
    raise UsageError(f"{wanted!r} {problem}; heedful ask prints the id of each decision")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTerms:
    """Conditions in SQL about the record of a decision, which each database reads in its own way."""

    user: str
    caller: str
    search: str
    """With two values: a pattern of LIKE, twice."""


SQLITE_TERMS = RecordTerms(
    user="json_extract(record, '$.task.scope.user') = ?",
    caller=f"json_extract(record, '$.task.scope.{CALLER}') = ?",
    search=(
        "(json_extract(record, '$.task.question') LIKE ? ESCAPE '\\' "
        "OR json_extract(record, '$.answer') LIKE ? ESCAPE '\\')"
    ),
)


def recalls_of(bank: str, caller: str | None, terms: RecordTerms) -> tuple[str, list[object]]:
    """The query for the number of recalls per entry of a bank, of one caller if given, and its values."""
    own = "" if caller is None else f" AND decision IN (SELECT id FROM decisions WHERE {terms.caller})"
    query = f"SELECT entry, count(*) AS n FROM uses WHERE bank = ? AND entry != ''{own} GROUP BY entry"
    return query, [bank] if caller is None else [bank, caller]


def where_of(wanted: DecisionFilter, terms: RecordTerms = SQLITE_TERMS) -> tuple[str, list[object]]:
    """A filter as a condition in SQL, and its values."""
    pattern = None if wanted.search is None else _like(wanted.search)
    conditions: list[tuple[str, tuple[object, ...]]] = [
        ("at >= ?", (wanted.since,)),
        ("at < ?", (wanted.until,)),
        ("route = ?", (wanted.route,)),
        ("verdict = ?", (wanted.verdict,)),
        (_USED.format(condition="bank = ? AND entry = ''"), (wanted.bank,)),
        (_USED.format(condition="entry = ?"), (wanted.entry,)),
        (terms.user, (wanted.user,)),
        (terms.caller, (wanted.caller,)),
        (f"({_GRADED}) = ?", (wanted.graded,)),
        ("coin = ?", (wanted.coin,)),
        ("policy = ?", (wanted.policy,)),
        (terms.search, (pattern, pattern)),
    ]
    used = [(term, values) for term, values in conditions if values[0] is not None]
    return " AND ".join(["1 = 1", *(term for term, _ in used)]), [v for _, values in used for v in values]


_USED = "EXISTS (SELECT 1 FROM uses WHERE decision = decisions.id AND {condition})"
_GRADED = "EXISTS (SELECT 1 FROM feedback WHERE decision = decisions.id)"


def _like(text: str) -> str:
    """A pattern of LIKE that finds the text as it is."""
    for special in ("\\", "%", "_"):
        text = text.replace(special, f"\\{special}")
    return f"%{text}%"


def facts_of(row: Sequence[Any]) -> DecisionFacts:
    *numbers, memory_first, memory_chosen, unchanged, grades, grade, preference = row
    id, at, route, verdict, chosen, confidence, net_value, seconds, policy = numbers
    return DecisionFacts(
        id=id,
        at=at,
        route=route,
        verdict=verdict,
        chosen=chosen,
        confidence=confidence,
        net_value=net_value,
        seconds=seconds,
        policy=policy,
        memory_first=bool(memory_first),
        memory_chosen=bool(memory_chosen),
        unchanged=bool(unchanged),
        grade=grade,
        preference=preference,
        grades=tuple(json.loads(grades)) if grades else (),
    )


def decision_values(decision: Decision) -> tuple[str, float, str]:
    """Id, time and record of a decision; a policy without an infinite threshold is JSON as it is."""
    plain = isfinite(decision.policy.threshold) and decision.policy.value is None
    fields = decision if plain else decision_fields(decision)
    return decision.id, decision.at, msgspec.json.encode(fields).decode()
