"""Purged texts are gone from every file of the store."""

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heedful import Database, SqliteFeedback, SqliteJournal, SqliteStore, StoreError, UsageError, new_entry
from heedful.feedback import grade_feedback
from heedful.memory.purge import PurgeCount, PurgeOrder, count, purge
from heedful.memory.stored import StoredBank
from heedful.memory.vectors import VectorCache
from heedful.records import Feedback, RecallRef
from heedful.testing import DECISION
from heedful.types import Evidence, Task

SECRET = "Zanzibar-4711"
ENTRY = new_entry(f"Ana's code is {SECRET}.", kind="fact", id="code", scope={"user": "ana"}, tags=[SECRET])


def held(store: SqliteStore) -> list[str]:
    """The files of the store that contain the secret."""
    folder = store.database.path.parent
    return [file.name for file in sorted(folder.iterdir()) if SECRET.encode() in file.read_bytes()]


def filled(store: SqliteStore) -> None:
    asyncio.run(
        store.put(
            "notes", [new_entry("Old.", kind="fact", id="code"), new_entry("Tea.", kind="fact", id="tea")]
        )
    )
    asyncio.run(store.put("notes", [ENTRY]))
    evidence = Evidence(entry="code", version=ENTRY.digest, task="t", utility=1.0, decision="d1")
    asyncio.run(store.observe("notes", [evidence]))
    first = replace(DECISION.first, recalls=(RecallRef(entry="code", version=ENTRY.digest, score=1.0),))
    decisions = [
        replace(DECISION, id="d1", at=1.0, answer=SECRET, first=first, sources={"none": {"bank": "notes"}}),
        replace(DECISION, id="d2", at=2.0, task=Task(question=f"Is it {SECRET}?", scope={"user": "ana"})),
        replace(DECISION, id="d3", at=3.0),
    ]
    for decision in decisions:
        asyncio.run(SqliteJournal(store.database).record(decision))


def ids(store: SqliteStore) -> list[str]:
    return [decision.id for decision in asyncio.run(SqliteJournal(store.database).recent(9))]


def test_a_purged_entry_leaves_its_digest_and_its_evidence_and_no_text(store: SqliteStore) -> None:
    filled(store)
    assert held(store)
    done = purge(store.database, PurgeOrder(bank="notes", entry="code", with_decisions=True))
    assert done == PurgeCount(entries=1, decisions=1)
    purge(store.database, PurgeOrder(user="ana"))
    assert held(store) == []
    assert [entry.id for entry in asyncio.run(store.entries("notes"))] == ["tea"]
    assert asyncio.run(store.banks()) == {"notes": 1}
    assert [seen.version for seen in asyncio.run(store.evidence("notes"))] == [ENTRY.digest]
    with store.database.reading() as connection:
        stones = [tuple(row) for row in connection.execute("SELECT kind, id, digest FROM tombstones")]
    assert ("entry", "code", ENTRY.digest) in stones
    assert {(kind, id) for kind, id, _ in stones} == {
        ("entry", "code"),
        ("decision", "d1"),
        ("decision", "d2"),
    }
    with pytest.raises(UsageError, match="has no version"):
        asyncio.run(store.version("notes", "code", ENTRY.digest))


def test_everything_of_a_user_is_purged_and_nothing_of_others(store: SqliteStore) -> None:
    filled(store)
    assert count(store.database, PurgeOrder(user="ana")) == PurgeCount(entries=1, decisions=2)
    assert held(store), "a count deletes nothing"
    assert purge(store.database, PurgeOrder(user="ana")) == PurgeCount(entries=1, decisions=2)
    assert held(store) == []
    assert ids(store) == ["d3"]
    assert purge(store.database, PurgeOrder(user="nobody")) == PurgeCount()


def test_a_purged_bank_has_no_entry_and_old_decisions_go_by_their_time(store: SqliteStore) -> None:
    filled(store)
    assert purge(store.database, PurgeOrder(bank="notes")) == PurgeCount(entries=2)
    assert asyncio.run(store.banks()) == {}
    assert purge(store.database, PurgeOrder(before=3.0)) == PurgeCount(decisions=2)
    assert (ids(store), held(store)) == (["d3"], [])


def test_a_purged_decision_says_when_it_was_purged_and_keeps_only_the_grades_of_its_feedback(
    store: SqliteStore,
) -> None:
    filled(store)
    journal, desk = SqliteJournal(store.database), SqliteFeedback(store.database)
    decision = asyncio.run(journal.find("d2"))
    short = Feedback(decision="d2", kind="answer", value=SECRET, metric="text", grades=(True,))
    with pytest.raises(UsageError, match="2 passes, but there are 1 grades"):
        asyncio.run(desk.give(short))
    asyncio.run(desk.give(replace(short, grades=(True, False))))
    purge(store.database, PurgeOrder(decision="d2"))
    assert asyncio.run(desk.of([decision]))["d2"][0].grades == (True, False)
    assert asyncio.run(desk.of([decision]))["d2"][0].value == ""
    with pytest.raises(UsageError, match="'d2' was purged on"):
        asyncio.run(journal.find("d2"))
    with pytest.raises(UsageError, match="is not a recorded decision"):
        asyncio.run(desk.give(grade_feedback(decision, True)))


@pytest.mark.parametrize(
    "order", [PurgeOrder(bank="no"), PurgeOrder(bank="notes", entry="no"), PurgeOrder(decision="no")]
)
def test_what_is_not_there_is_refused(order: PurgeOrder, store: SqliteStore) -> None:
    filled(store)
    with pytest.raises(UsageError, match="'no'"):
        purge(store.database, order)


def test_a_running_bank_stops_recalling_a_purged_entry_even_if_another_takes_its_place(
    store: SqliteStore,
) -> None:
    now = [0.0]
    bank = StoredBank(store, "notes", method="bm25", clock=lambda: now[0])

    async def recalled() -> list[str]:
        now[0] += 1
        return [recall.entry.text for recall in await bank.recall("tea or coffee", limit=5)]

    async def story() -> None:
        await store.put("notes", [new_entry("Drink tea.", kind="rule", id="a")])
        assert await recalled() == ["Drink tea."]
        purge(store.database, PurgeOrder(bank="notes", entry="a"))
        await store.put("notes", [new_entry("Drink coffee.", kind="rule", id="b")])
        assert "Drink tea." not in await recalled()

    asyncio.run(story())
    [again] = [e for e in asyncio.run(store.entries("notes")) if e.id == "b"]
    assert again.state == "active"


def test_the_vector_of_a_purged_text_goes_unless_another_entry_has_the_text(store: SqliteStore) -> None:
    class Ones:
        def embed(self, texts: object) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
            return np.ones((2, 3), dtype=np.float32)

    twins = [new_entry(text, kind="fact", id=f"e{n}") for n, text in enumerate(("one", "two", "two"))]
    asyncio.run(store.put("notes", twins))
    VectorCache(store.database).vectors(["one", "two"], Ones())
    purge(store.database, PurgeOrder(bank="notes", entry="e0"))
    purge(store.database, PurgeOrder(bank="notes", entry="e1"))
    assert VectorCache(store.database).missing(["one", "two"]) == 1


def test_a_reader_in_another_process_is_named_because_its_log_may_hold_the_text(
    store: SqliteStore, tmp_path: Path
) -> None:
    filled(store)
    other = Database(store.database.path)
    with other.reading() as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM entries").fetchall()
        store.database._connection.execute("PRAGMA busy_timeout = 10")
        with pytest.raises(StoreError, match="run the same command again"):
            purge(store.database, PurgeOrder(user="ana"))
        connection.execute("COMMIT")
    other.close()
    assert purge(store.database, PurgeOrder(user="ana")) == PurgeCount()
    assert held(store) == []
