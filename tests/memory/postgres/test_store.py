"""Banks, decisions and feedback in a real Postgres: the same suites as for SQLite."""

import asyncio
from dataclasses import replace

import pytest

from heedful import SqliteJournal, SqliteStore, UsageError, new_entry
from heedful.feedback import grade_feedback
from heedful.memory.postgres.feedback import PostgresFeedback
from heedful.memory.postgres.journal import PostgresJournal
from heedful.memory.postgres.store import PostgresStore, bank_digest
from heedful.records import DecisionFilter, Feedback
from heedful.testing import DECISION, ENTRIES, check_decision_reader, check_journal, check_store
from heedful.types import Evidence, Mark, Trial
from tests.postgres_server import PostgresServer


def test_the_store_conforms(postgres: PostgresStore) -> None:
    asyncio.run(check_store(postgres))


def test_the_journal_conforms(postgres: PostgresStore) -> None:
    asyncio.run(check_journal(PostgresJournal(postgres.database)))


def test_the_journal_reads_by_filters(postgres: PostgresStore) -> None:
    asyncio.run(check_decision_reader(PostgresJournal(postgres.database)))


def test_a_scope_and_a_time_come_back_as_they_were(postgres: PostgresStore) -> None:
    entry = new_entry("x", kind="fact", id="x", scope={"user": "ana", "app": "ö"}, valid_from=1.5)
    asyncio.run(postgres.put("b", [entry]))
    assert asyncio.run(postgres.entries("b")) == [entry]


def test_a_text_that_postgres_cannot_store_is_refused_in_one_sentence(postgres: PostgresStore) -> None:
    with pytest.raises(UsageError, match="Postgres cannot store this value"):
        asyncio.run(postgres.put("b", [replace(ENTRIES[0], text="nul \x00")]))
    assert asyncio.run(postgres.banks()) == {}


def test_a_decision_with_any_text_is_stored(postgres: PostgresStore) -> None:
    journal = PostgresJournal(postgres.database)
    odd = replace(DECISION, answer="nul \x00 and 'quote' % ? \\")
    asyncio.run(journal.record(odd))
    assert asyncio.run(journal.find(odd.id)) == odd
    assert [d.id for d in asyncio.run(journal.select(DecisionFilter(search="'QUOTE' % ?")))] == [odd.id]


def test_a_decision_that_is_recorded_again_is_stored_once(postgres: PostgresStore) -> None:
    journal = PostgresJournal(postgres.database)
    for _ in range(2):
        asyncio.run(journal.record(DECISION))
    assert len(asyncio.run(journal.recent(9))) == 1


def test_facts_and_uses_equal_those_of_sqlite(postgres: PostgresStore, store: SqliteStore) -> None:
    taken = replace(DECISION.candidates[0], confidence=None)
    decisions = [
        DECISION,
        replace(DECISION, id="1", chosen=0, candidates=(taken,), answer="other", confidence=None),
        replace(DECISION, id="2", sources={"facts": {"kind": "search"}}),
        replace(DECISION, id="3", trial=Trial(share=0.5, allowed=True)),
        replace(DECISION, id="4", trial=Trial(share=0.5, allowed=True), first=DECISION.candidates[0].record),
        replace(DECISION, id="5", candidates=(), verdict=None, sources={}),
    ]
    journals = PostgresJournal(postgres.database), SqliteJournal(store.database)
    for journal in journals:
        asyncio.run(journal.record_all(decisions))
    for wanted in (
        *(DecisionFilter(), DecisionFilter(coin=True), DecisionFilter(coin=False)),
        *(DecisionFilter(entry="e"), DecisionFilter(bank="facts"), DecisionFilter(verdict="rollback")),
    ):
        by_id = [
            sorted(asyncio.run(journal.facts(wanted, 9)), key=lambda facts: facts.id) for journal in journals
        ]
        assert by_id[0] == by_id[1], wanted
        assert asyncio.run(journals[0].traffic(wanted)) == asyncio.run(journals[1].traffic(wanted)), wanted
    assert asyncio.run(journals[0].recalls("facts")) == asyncio.run(journals[1].recalls("facts"))


def test_feedback_counts_once_and_a_correction_replaces_its_evidence(postgres: PostgresStore) -> None:
    journal, feedback = PostgresJournal(postgres.database), PostgresFeedback(postgres.database)
    asyncio.run(journal.record(DECISION))
    right = Feedback(decision=DECISION.id, kind="answer", value="blue", metric="text", grades=(True, False))
    receipts = [asyncio.run(feedback.give(right)) for _ in range(2)]
    assert [receipt.new for receipt in receipts] == [True, False]
    assert [seen.utility for seen in asyncio.run(postgres.evidence("facts"))] == [-1.0]
    asyncio.run(feedback.give(replace(right, value="red", grades=(False, True))))
    assert [seen.utility for seen in asyncio.run(postgres.evidence("facts"))] == [1.0]
    asyncio.run(feedback.give(grade_feedback(DECISION, right=True)))
    known = asyncio.run(feedback.of([DECISION]))[DECISION.id]
    assert {given.kind: given.value for given in known} == {"answer": "red", "grade": "right"}
    with pytest.raises(UsageError, match="not a recorded decision"):
        asyncio.run(feedback.give(replace(right, decision="nobody")))


def test_the_same_feedback_at_the_same_time_counts_once(postgres: PostgresStore) -> None:
    journal, feedback = PostgresJournal(postgres.database), PostgresFeedback(postgres.database)
    right = Feedback(decision=DECISION.id, kind="answer", value="blue", metric="text", grades=(True, False))

    async def story() -> list[bool]:
        await journal.record(DECISION)
        return [receipt.new for receipt in await asyncio.gather(*(feedback.give(right) for _ in range(8)))]

    assert sum(asyncio.run(story())) == 1
    assert len(asyncio.run(postgres.evidence("facts"))) == 1


def test_writers_of_one_bank_do_not_lose_each_others_changes(postgres: PostgresStore) -> None:
    evidence = Evidence(entry="e", version="v", task="t", utility=1.0, decision="")

    async def story() -> None:
        await postgres.put("b", ENTRIES)
        before = await postgres.revision("b")
        new = [new_entry(f"text {place}", kind="fact", id=f"n{place}") for place in range(8)]
        marks = [Mark(entry="dozen", state="retired", reason=f"{place}") for place in range(8)]
        await asyncio.gather(
            *(postgres.put("b", [entry]) for entry in new),
            *(postgres.mark("b", [mark]) for mark in marks),
            *(postgres.observe("b", [evidence]) for _ in range(8)),
        )
        assert await postgres.revision("b") == before + 16
        assert len(await postgres.entries("b")) == len(ENTRIES) + 8
        assert len(await postgres.history("b", "dozen")) == 8
        assert len(await postgres.evidence("b")) == 8

    asyncio.run(story())


def test_the_digest_is_that_of_the_entries(postgres: PostgresStore) -> None:
    from heedful import MemoryBank

    asyncio.run(postgres.put("b", ENTRIES))
    asyncio.run(postgres.mark("b", [Mark(entry="dozen", state="retired")]))
    digest = asyncio.run(postgres.database.read(lambda connection: bank_digest(connection, "b")))
    assert digest == MemoryBank("b", asyncio.run(postgres.entries("b"))).digest


def test_two_stores_on_one_database_see_the_same(postgres: PostgresStore, postgres_url: str) -> None:
    from heedful.memory.postgres.database import PostgresDatabase

    other = PostgresStore(PostgresDatabase(postgres_url))
    asyncio.run(postgres.put("b", ENTRIES))
    assert tuple(asyncio.run(other.entries("b"))) == ENTRIES
    asyncio.run(other.aclose())


def test_the_server_is_real(postgres_server: PostgresServer, postgres_url: str) -> None:
    [(version,)] = postgres_server.run(postgres_url, "SELECT version()")
    assert version.startswith("PostgreSQL")
