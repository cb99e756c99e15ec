"""Feedback in SQLite, together with the evidence that it gives."""

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heedful.decisions import read_decision
from heedful.errors import UsageError
from heedful.feedback import evidence_of
from heedful.memory.database import Database
from heedful.memory.rows import EVIDENCE_COLUMNS, Row, evidence_values
from heedful.records import Decision, Feedback
from heedful.types import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackReceipt:
    """What became of a piece of feedback."""

    new: bool
    """False if it was known already."""
    evidence: Mapping[str, Sequence[Evidence]]
    """By bank: all evidence that the feedback on this decision gives."""


@dataclass(frozen=True, slots=True)
class SqliteFeedback:
    """Stores feedback once, however often it is sent; it is on disk when `give` returns."""

    database: Database

    async def give(self, feedback: Feedback) -> FeedbackReceipt:
        """Store feedback and its evidence together; another value of the same kind replaces the old one."""
        return await self.database.write(lambda connection: _give(connection, feedback))

    async def of(self, decisions: Sequence[Decision]) -> dict[str, list[Feedback]]:
        """The feedback on each of these decisions, by decision."""
        ids = [decision.id for decision in decisions]
        return await self.database.read(lambda connection: {id: _known(connection, id) for id in ids})


def _give(connection: sqlite3.Connection, feedback: Feedback) -> FeedbackReceipt:
    row = connection.execute("SELECT record FROM decisions WHERE id = ?", (feedback.decision,)).fetchone()
    receipt = receipt_of(feedback, row and row["record"], _known(connection, feedback.decision))
    if not receipt.new:
        return receipt
    connection.execute(
        "INSERT OR REPLACE INTO feedback (decision, kind, at, value, metric, grades) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (feedback.decision, feedback.kind, time.time(), *feedback_content(feedback)),
    )
    connection.execute("DELETE FROM evidence WHERE decision = ? AND feedback = 1", (feedback.decision,))
    connection.executemany(
        f"INSERT INTO evidence ({', '.join(EVIDENCE_COLUMNS)}, feedback) VALUES (?, ?, ?, ?, ?, ?, ?, 1)",
        [values for bank, seen in receipt.evidence.items() for values in evidence_values(bank, seen)],
    )
    return receipt


def _known(connection: sqlite3.Connection, decision: str) -> list[Feedback]:
    rows = connection.execute("SELECT * FROM feedback WHERE decision = ? ORDER BY at", (decision,)).fetchall()
    return [feedback_of(row) for row in rows]


def receipt_of(feedback: Feedback, record: str | None, given: Sequence[Feedback]) -> FeedbackReceipt:
    """What feedback on a recorded decision changes, beside the feedback that was given before."""
    if record is None:
        raise UsageError(f"{feedback.decision!r} is not a recorded decision; heedful decisions ls lists them")
    decision = read_decision(json.loads(record))
    if feedback.kind == "answer" and len(feedback.grades) != len(decision.passes):
        raise UsageError(
            f"decision {decision.id} has {len(decision.passes)} passes, but there are "
            f"{len(feedback.grades)} grades: make the feedback with heedful.feedback.answer_feedback"
        )
    by_kind = {known.kind: known for known in given}
    before = by_kind.get(feedback.kind)
    new = before is None or feedback_content(before) != feedback_content(feedback)
    newest = {**by_kind, feedback.kind: feedback} if new else by_kind
    return FeedbackReceipt(new=new, evidence=evidence_of(decision, list(newest.values())))


def feedback_content(feedback: Feedback) -> tuple[str, str, str]:
    """The columns that make feedback new: value, metric and grades."""
    return feedback.value, feedback.metric, json.dumps(feedback.grades)


def feedback_of(row: Row) -> Feedback:
    return Feedback(
        decision=row["decision"],
        kind=row["kind"],
        value=row["value"],
        metric=row["metric"],
        grades=tuple(json.loads(row["grades"])),
        at=row["at"],
    )
