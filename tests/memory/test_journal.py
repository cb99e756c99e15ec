"""Filters, facts and counts of decisions, also in a store that an older version wrote."""

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from heedful import Database, SqliteFeedback, SqliteJournal, SqliteStore
from heedful.decisions import decision_fields
from heedful.feedback import grade_feedback
from heedful.memory.database import LIVE_USE, REVISIONS, SCHEMA
from heedful.records import DecisionFilter, Feedback
from heedful.testing import DECISION, check_decision_reader


def test_the_sqlite_journal_reads_by_filters(store: SqliteStore) -> None:
    asyncio.run(check_decision_reader(SqliteJournal(store.database)))


def test_facts_hold_every_kind_of_feedback(store: SqliteStore) -> None:
    journal, feedback = SqliteJournal(store.database), SqliteFeedback(store.database)
    asyncio.run(journal.record(DECISION))
    given = Feedback(decision=DECISION.id, kind="answer", value="blue", metric="text", grades=(True, False))
    preferred = replace(given, kind="preference", value="tie", grades=())
    for one in (given, preferred, grade_feedback(DECISION, right=True)):
        asyncio.run(feedback.give(one))
    [facts] = asyncio.run(journal.facts(DecisionFilter(graded=True), 9))
    assert (facts.grades, facts.preference, facts.grade) == ((True, False), "tie", "right")


def test_a_purged_decision_leaves_no_recalls(store: SqliteStore) -> None:
    journal = SqliteJournal(store.database)
    asyncio.run(journal.record(DECISION))
    assert asyncio.run(journal.recalls("facts")) == {"e": 1}
    asyncio.run(journal.purge(before=1.0))
    assert asyncio.run(journal.recalls("facts")) == {}


def test_decisions_of_an_older_store_are_found_by_their_entries(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "s.db")) as old:
        old.executescript(SCHEMA + REVISIONS + LIVE_USE)
        record = json.dumps(decision_fields(DECISION))
        old.execute("INSERT INTO decisions (id, at, record) VALUES ('0abc', 0.0, ?)", (record,))
        old.execute("PRAGMA user_version=3")
        old.commit()
    with closing(Database(tmp_path / "s.db")) as database:
        journal = SqliteJournal(database)
        assert asyncio.run(journal.recalls("facts")) == {"e": 1}
        assert [d.id for d in asyncio.run(journal.select(DecisionFilter(entry="e", bank="facts")))] == [
            "0abc"
        ]


def test_an_entry_is_found_even_if_its_source_names_no_bank(store: SqliteStore) -> None:
    journal = SqliteJournal(store.database)
    asyncio.run(journal.record(replace(DECISION, sources={"facts": {"kind": "search"}})))
    assert [d.id for d in asyncio.run(journal.select(DecisionFilter(entry="e")))] == [DECISION.id]
    assert asyncio.run(journal.select(DecisionFilter(bank="facts"))) == []
