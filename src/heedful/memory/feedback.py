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
    if row is None:
        raise UsageError(f"{feedback.decision!r} is not a recorded decision; heedful decisions ls lists them")
    decision = read_decision(json.loads(row["record"]))
    if feedback.kind == "answer" and len(feedback.grades) != len(decision.passes):
        raise UsageError(
            f"decision {decision.id} has {len(decision.passes)} passes, but there are "
            f"{len(feedback.grades)} grades: make the feedback with heedful.feedback.answer_feedback"
        )
    given = {known.kind: known for known in _known(connection, decision.id)}
    before = given.get(feedback.kind)
    if before is not None and _content(before) == _content(feedback):
        return FeedbackReceipt(new=False, evidence=evidence_of(decision, list(given.values())))
    evidence = evidence_of(decision, list({**given, feedback.kind: feedback}.values()))
    connection.execute(
        "INSERT OR REPLACE INTO feedback (decision, kind, at, value, metric, grades) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (decision.id, feedback.kind, time.time(), *_content(feedback)),
    )
    connection.execute("DELETE FROM evidence WHERE decision = ? AND feedback = 1", (decision.id,))
    connection.executemany(
        "INSERT INTO evidence (at, bank, entry, version, task, utility, decision, feedback) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, 1)",
        [
            (time.time(), bank, e.entry, e.version, e.task, e.utility, e.decision)
            for bank, seen in evidence.items()
            for e in seen
        ],
    )
    return FeedbackReceipt(new=True, evidence=evidence)


def _content(feedback: Feedback) -> tuple[str, str, str]:
    return feedback.value, feedback.metric, json.dumps(feedback.grades)


def _known(connection: sqlite3.Connection, decision: str) -> list[Feedback]:
    rows = connection.execute("SELECT * FROM feedback WHERE decision = ? ORDER BY at", (decision,)).fetchall()
    return [
        Feedback(
            decision=row["decision"],
            kind=row["kind"],
            value=row["value"],
            metric=row["metric"],
            grades=tuple(json.loads(row["grades"])),
            at=row["at"],
        )
        for row in rows
    ]
