import sqlite3
from dataclasses import replace

import pytest

from heedful import Database, Entry, SqliteStore, StoreError, UsageError, new_entry
from heedful.testing import check_store

RULE = new_entry("Ship before noon.", kind="rule", id="ship", tags=("a", "é"), source="hand")


def test_the_sqlite_store_conforms(store):
    check_store(store)


def test_a_new_version_is_appended_and_the_old_one_stays(store):
    newer = new_entry("Ship before one.", kind="rule", id="ship")
    store.put("b", [RULE])
    assert store.put("b", [newer]) == 1
    assert [e.text for e in store.entries("b")] == ["Ship before one."]
    assert store.version("b", "ship", RULE.digest).text == "Ship before noon."
    assert store.put("b", [RULE]) == 1, "going back to old content is a new version too"
    assert [e.text for e in store.versions("b", "ship")] == [
        "Ship before noon.",
        "Ship before one.",
        "Ship before noon.",
    ]


def test_a_failing_put_keeps_nothing(store):
    broken = Entry(id="x", kind="rule", text=None)  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="NOT NULL"):
        store.put("b", [RULE, broken])
    assert store.entries("b") == []


def test_states_are_a_log_and_protection_holds(store):
    store.put("b", [RULE])
    store.mark("b", "ship", "protected", "dear")
    with pytest.raises(UsageError, match="protected"):
        store.mark("b", "ship", "retired", "harm")
    store.mark("b", "ship", "active", "")
    store.mark("b", "ship", "retired", "harm")
    assert [(state, reason) for _, state, reason in store.history("b", "ship")] == [
        ("protected", "dear"),
        ("active", ""),
        ("retired", "harm"),
    ]
    assert store.entry("b", "ship").reason == "harm"


def test_an_entry_is_found_by_the_beginning_of_its_id(store):
    store.put("b", [RULE, new_entry("Sing.", kind="rule", id="sing")])
    assert store.entry("b", "sh").id == "ship"
    with pytest.raises(UsageError, match="could be ship, sing"):
        store.entry("b", "s")
    with pytest.raises(UsageError, match="no entry 'x'"):
        store.entry("b", "x")


def test_a_second_process_sees_what_was_acknowledged(tmp_path):
    SqliteStore(Database(tmp_path / "s.db")).put("b", [RULE])
    assert SqliteStore(Database(tmp_path / "s.db")).entries("b") == [RULE]


def test_evidence_is_written_with_full_synchronisation(store):
    with store.database.reading() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


def test_a_file_that_is_no_store_is_named(tmp_path):
    (tmp_path / "s.db").write_text("this is not a database, it is a note to myself " * 50)
    with pytest.raises(StoreError, match=r"s\.db does not open"):
        Database(tmp_path / "s.db")


def test_a_store_of_a_newer_heedful_is_left_alone(tmp_path):
    connection = sqlite3.connect(tmp_path / "s.db")
    connection.execute("PRAGMA user_version=99")
    connection.close()
    with pytest.raises(StoreError, match="newer heedful"):
        Database(tmp_path / "s.db")


def test_importing_again_leaves_states_as_they_are(store):
    store.put("b", [RULE])
    store.mark("b", "ship", "retired", "harm")
    store.put("b", [RULE, new_entry("Sing.", kind="rule", id="sing")])
    assert [e.state for e in store.entries("b")] == ["retired", "active"]


def test_an_entry_that_comes_retired_from_a_backup_stays_retired(store):
    store.put("b", [replace(RULE, state="retired", reason="harm")])
    assert (store.entry("b", "ship").state, store.entry("b", "ship").reason) == ("retired", "harm")
