import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from heedful import Database, Entry, SqliteStore, StoreError, UsageError, new_entry
from heedful.memory import database as schema
from heedful.memory.journal import SqliteJournal
from heedful.memory.purge import PurgeOrder, purge
from heedful.testing import check_journal, check_store
from heedful.types import Grounds, Mark, State

RULE = new_entry("Ship before noon.", kind="rule", id="ship", tags=("a", "é"), source="hand")


def mark(store: SqliteStore, state: State, reason: str) -> None:
    asyncio.run(store.mark("b", [Mark(entry="ship", state=state, reason=reason)]))


def test_the_sqlite_store_conforms(store: SqliteStore) -> None:
    asyncio.run(check_store(store))


def test_the_sqlite_journal_conforms(store: SqliteStore) -> None:
    asyncio.run(check_journal(SqliteJournal(store.database)))


def test_a_new_version_is_appended_and_the_old_one_stays(store: SqliteStore) -> None:
    newer = new_entry("Ship before one.", kind="rule", id="ship")
    asyncio.run(store.put("b", [RULE]))
    assert asyncio.run(store.put("b", [newer])) == 1
    assert [e.text for e in asyncio.run(store.entries("b"))] == ["Ship before one."]
    assert asyncio.run(store.version("b", "ship", RULE.digest)).text == "Ship before noon."
    assert asyncio.run(store.put("b", [RULE])) == 1, "going back to old content is a new version too"
    assert [e.text for e in asyncio.run(store.versions("b", "ship"))] == [
        "Ship before noon.",
        "Ship before one.",
        "Ship before noon.",
    ]


def test_a_failing_put_keeps_nothing(store: SqliteStore) -> None:
    broken = Entry(id="x", kind="rule", text=None)  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="NOT NULL"):
        asyncio.run(store.put("b", [RULE, broken]))
    assert asyncio.run(store.entries("b")) == []


def test_states_are_a_log_and_protection_holds(store: SqliteStore) -> None:
    asyncio.run(store.put("b", [RULE]))
    mark(store, "protected", "dear")
    with pytest.raises(UsageError, match="protected"):
        mark(store, "retired", "harm")
    mark(store, "active", "")
    mark(store, "retired", "harm")
    assert [(change.state, change.reason) for change in asyncio.run(store.history("b", "ship"))] == [
        ("protected", "dear"),
        ("active", ""),
        ("retired", "harm"),
    ]
    assert asyncio.run(store.entry("b", "ship")).reason == "harm"


def test_an_entry_is_found_by_the_beginning_of_its_id(store: SqliteStore) -> None:
    asyncio.run(store.put("b", [RULE, new_entry("Sing.", kind="rule", id="sing")]))
    assert asyncio.run(store.entry("b", "sh")).id == "ship"
    with pytest.raises(UsageError, match="matches ship, sing"):
        asyncio.run(store.entry("b", "s"))
    with pytest.raises(UsageError, match="no entry 'x'"):
        asyncio.run(store.entry("b", "x"))


def test_a_second_process_sees_what_was_acknowledged(tmp_path: Path) -> None:
    asyncio.run(SqliteStore(Database(tmp_path / "s.db")).put("b", [RULE]))
    assert asyncio.run(SqliteStore(Database(tmp_path / "s.db")).entries("b")) == [RULE]


def test_evidence_is_written_with_full_synchronisation(store: SqliteStore) -> None:
    with store.database.reading() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


def test_a_file_that_is_no_store_is_named(tmp_path: Path) -> None:
    (tmp_path / "s.db").write_text("this is not a database, it is a note to myself " * 50)
    with pytest.raises(StoreError, match=r"cannot open the store .*s\.db"):
        Database(tmp_path / "s.db")


def test_a_store_of_a_newer_heedful_is_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "s.db")
    connection.execute("PRAGMA user_version=99")
    connection.close()
    with pytest.raises(StoreError, match="newer version of heedful"):
        Database(tmp_path / "s.db")


def test_the_states_of_an_older_store_are_the_beginning_of_its_audit_log(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "s.db")) as old:
        old.executescript(schema.SCHEMA + schema.REVISIONS + schema.LIVE_USE)
        old.execute(
            "INSERT INTO states (at, bank, id, state, reason) VALUES (1, 'b', 'ship', 'retired', 'old')"
        )
        old.execute("PRAGMA user_version=3")
        old.commit()
    store = SqliteStore(Database(tmp_path / "s.db"))
    asyncio.run(store.put("b", [RULE]))
    asyncio.run(store.mark("b", [Mark(entry="ship", state="active", by="ana")]))
    told = [(change.before, change.state, change.by) for change in asyncio.run(store.audit("b"))]
    assert told == [("active", "retired", ""), ("retired", "active", "ana")]


def test_purging_leaves_the_rows_of_the_audit_log_without_their_texts(store: SqliteStore) -> None:
    asyncio.run(store.put("b", [RULE]))
    grounds = Grounds(rule="betting", tasks=9, helps=0, hurts=9, bound=-0.5, group="author ana")
    wrong = Mark(entry="ship", state="quarantined", reason="Ship early?", by="bo", grounds=grounds)
    asyncio.run(store.mark("b", [wrong]))
    purge(store.database, PurgeOrder(bank="b", entry="ship"))
    told = [(c.state, c.reason, c.by, c.grounds) for c in asyncio.run(store.audit("b"))]
    assert told == [("quarantined", "", "bo", None), ("retired", "purged", "purge", None)]


def test_importing_again_leaves_states_as_they_are(store: SqliteStore) -> None:
    asyncio.run(store.put("b", [RULE]))
    mark(store, "retired", "harm")
    asyncio.run(store.put("b", [RULE, new_entry("Sing.", kind="rule", id="sing")]))
    assert [e.state for e in asyncio.run(store.entries("b"))] == ["retired", "active"]


def test_an_entry_that_comes_retired_from_a_backup_stays_retired(store: SqliteStore) -> None:
    asyncio.run(store.put("b", [replace(RULE, state="retired", reason="harm")]))
    kept = asyncio.run(store.entry("b", "ship"))
    assert (kept.state, kept.reason) == ("retired", "harm")


def test_a_store_that_is_up_to_date_is_opened_without_writing(store: SqliteStore) -> None:
    with closing(sqlite3.connect(store.database.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with closing(Database(store.database.path)) as second:
            assert asyncio.run(SqliteStore(second).entries("b")) == []
        other.execute("ROLLBACK")
