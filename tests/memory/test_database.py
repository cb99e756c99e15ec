"""A store that is damaged, locked, or may only be read."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from heedful import Database, SqliteJournal, SqliteStore, StoreError, new_entry
from heedful.testing import DECISION

RULE = new_entry("Ship before noon.", kind="rule", id="ship")
READING = """
import asyncio, os, sys
from heedful import Database, SqliteStore, StoreError, new_entry
from heedful.memory import database, sqlite
import encodings.idna
if os.getuid() == 0:  # root may write everything
    os.setgid(65534)
    os.setuid(65534)
store = SqliteStore(Database(sys.argv[1]))
print([entry.text for entry in asyncio.run(store.entries("b"))])
try:
    asyncio.run(store.put("b", [new_entry("Sing.", kind="rule")]))
except StoreError as error:
    print(error)
"""


def filled(path: Path) -> None:
    with closing(Database(path)) as database:
        asyncio.run(SqliteStore(database).put("b", [RULE]))


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="permissions of POSIX")
def test_a_store_that_may_not_be_written_can_be_read() -> None:
    with TemporaryDirectory() as folder:  # another user cannot enter the folders of pytest
        file = Path(folder) / "s.db"
        filled(file)
        file.chmod(0o444)
        Path(folder).chmod(0o555)
        command = [sys.executable, "-c", READING, str(file)]
        done = subprocess.run(command, capture_output=True, text=True)
        Path(folder).chmod(0o755)
    assert done.returncode == 0, done.stderr
    read, refused = done.stdout.splitlines()
    assert read == "['Ship before noon.']"
    assert "may only read it" in refused


def test_a_locked_store_is_waited_for_only_as_long_as_asked(tmp_path: Path) -> None:
    filled(tmp_path / "s.db")
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with closing(Database(tmp_path / "s.db", wait=0.0)) as database:
            store = SqliteStore(database)
            assert asyncio.run(store.entries("b")) == [RULE]
            with pytest.raises(StoreError, match="another process is using it"):
                asyncio.run(store.put("b", [new_entry("Sing.", kind="rule")]))


def test_a_damaged_page_is_named_with_what_to_do(tmp_path: Path) -> None:
    filled(tmp_path / "s.db")
    damage(tmp_path / "s.db")
    with pytest.raises(StoreError, match="damaged: restore it from a backup"):
        asyncio.run(SqliteStore(Database(tmp_path / "s.db")).entries("b"))


def damage(path: Path) -> None:
    """Overwrite everything but the first page, which says that it is a database."""
    with closing(sqlite3.connect(path)) as connection:  # or a log beside the file still holds the pages
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))


def test_many_writes_at_once_are_all_stored(tmp_path: Path) -> None:
    made = [replace(DECISION, id=f"{n:012x}") for n in range(400)]

    async def record(journal: SqliteJournal) -> None:
        await asyncio.gather(*map(journal.record, made))

    with closing(Database(tmp_path / "s.db")) as database:
        journal = SqliteJournal(database)
        asyncio.run(record(journal))
        assert {decision.id for decision in asyncio.run(journal.recent(999))} == {one.id for one in made}


def test_a_cursor_does_not_leave_its_transaction(tmp_path: Path) -> None:
    with closing(Database(tmp_path / "s.db")) as database:
        with pytest.raises(TypeError, match="return its rows"):
            asyncio.run(database.write(lambda connection: connection.execute("DELETE FROM decisions")))
        with pytest.raises(TypeError, match="return its rows"):
            asyncio.run(database.read(lambda connection: connection.execute("SELECT 1")))
