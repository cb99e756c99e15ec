"""Feedback in Postgres, together with the evidence that it gives."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from heedful.memory.feedback import FeedbackReceipt, feedback_content, feedback_of, receipt_of
from heedful.memory.postgres.database import PostgresDatabase
from heedful.memory.postgres.driver import Connection
from heedful.memory.postgres.store import insert, rows_of
from heedful.memory.rows import EVIDENCE_COLUMNS, evidence_values
from heedful.records import Decision, Feedback

_GIVE = f"""
{insert("feedback", ("decision", "kind", "at", "value", "metric", "grades"))}
ON CONFLICT (decision, kind) DO UPDATE
SET at = excluded.at, value = excluded.value, metric = excluded.metric, grades = excluded.grades
"""
_LOCK = "LOCK TABLE feedback IN ROW EXCLUSIVE MODE; SELECT pg_advisory_xact_lock({number})"
_DECISION = """
SELECT d.record, f.* FROM decisions d LEFT JOIN feedback f ON f.decision = d.id
WHERE d.id = %s ORDER BY f.at
"""
_KNOWN = "SELECT * FROM feedback WHERE decision = ANY(%s) ORDER BY at"


@dataclass(frozen=True, slots=True)
class PostgresFeedback:
    """Stores feedback once, however often and to whichever server it is sent; it is durable when `give`
    returns."""

    database: PostgresDatabase

    async def give(self, feedback: Feedback) -> FeedbackReceipt:
        """Store feedback and its evidence together; another value of the same kind replaces the old one."""
        return await self.database.write(lambda connection: _give(connection, feedback))

    async def of(self, decisions: Sequence[Decision]) -> dict[str, list[Feedback]]:
        """The feedback on each of these decisions, by decision."""
        ids = [decision.id for decision in decisions]
        rows = await self.database.read(lambda connection: rows_of(connection, _KNOWN, (ids,)))
        given: dict[str, list[Feedback]] = {id: [] for id in ids}
        for row in rows:
            given[row["decision"]].append(feedback_of(row))
        return given


async def _give(connection: Connection, feedback: Feedback) -> FeedbackReceipt:
    """Purging waits for this transaction or precedes it; feedback on the same decision comes one by one."""
    id = feedback.decision
    await connection.execute(_LOCK.format(number=_lock_number(id)).encode())
    rows = await rows_of(connection, _DECISION, (id,))
    known = [feedback_of(row) for row in rows if row["kind"] is not None]
    receipt = receipt_of(feedback, rows[0]["record"] if rows else None, known)
    if receipt.new:
        await _keep(connection, feedback, receipt)
    return receipt


async def _keep(connection: Connection, feedback: Feedback, receipt: FeedbackReceipt) -> None:
    """Store feedback and all evidence of its decision, in one exchange with Postgres."""
    id = feedback.decision
    async with connection.pipeline():
        await connection.execute(
            _GIVE.encode(), (id, feedback.kind, time.time(), *feedback_content(feedback))
        )
        await connection.execute("DELETE FROM evidence WHERE decision = %s AND feedback = 1", (id,))
        values = [(*row, 1) for bank, seen in receipt.evidence.items() for row in evidence_values(bank, seen)]
        statement = insert("evidence", (*EVIDENCE_COLUMNS, "feedback"))
        await connection.cursor().executemany(statement.encode(), values)


def _lock_number(decision: str) -> int:
    """The number of the advisory lock of a decision."""
    return int.from_bytes(sha256(decision.encode()).digest()[:8], "big", signed=True)
