"""`heedful store move`, against a real Postgres."""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from heedful import Database, SqliteStore, new_entry
from heedful.feedback import grade_feedback
from heedful.memory import move
from heedful.memory.moved_tables import MovedRow, MovedTable
from heedful.memory.postgres.database import PostgresDatabase
from heedful.memory.postgres.move import PostgresSide
from heedful.memory.postgres.store import PostgresStore
from heedful.memory.purge import PurgeOrder
from heedful.memory.sqlite_move import SqliteSide
from heedful.records import DecisionFilter
from heedful.testing import DECISION, ENTRIES
from heedful.types import Evidence, Mark, Trial
from tests.cli.conftest import Heedful


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store with versions, states, a purged entry, decisions, feedback and evidence."""
    path = tmp_path / "old.db"
    asyncio.run(_fill(SqliteStore(Database(path))))
    return path


async def _fill(store: SqliteStore) -> None:
    await store.put("b", ENTRIES)
    await store.put("b", [replace(ENTRIES[1], text="changed", scope={"b": "1", "a": "2"})])
    await store.put("c", [new_entry("gone", kind="fact", id="gone")])
    await store.mark("b", [Mark(entry="dozen", state="retired", reason="old", by="ana")])
    await store.observe("b", [Evidence(entry="e", version="v", task="t", utility=0.1, decision="")])
    for place in range(25):
        await store.journal.announce(f"{place}x", Trial(share=0.5, allowed=True))
        await store.journal.record(replace(DECISION, id=f"{place}x", at=float(place)))
    await store.feedback.give(grade_feedback(replace(DECISION, id="3x"), right=True))
    await store.purge(PurgeOrder(bank="c", entry="gone"))
    await store.purge(PurgeOrder(decision="4x"))
    await store.aclose()


async def _same(old: SqliteStore, new: PostgresStore) -> None:
    assert await new.entries("b") == await old.entries("b")
    assert await new.audit("b") == await old.audit("b")
    assert await new.versions("b", ENTRIES[1].id) == await old.versions("b", ENTRIES[1].id)
    assert await new.evidence("b") == await old.evidence("b")
    assert await new.banks() == await old.banks()
    every = DecisionFilter()
    assert await new.journal.select(every) == await old.journal.select(every)
    assert await new.journal.facts(every, 99) == await old.journal.facts(every, 99)
    assert await new.journal.recalls("facts") == await old.journal.recalls("facts")
    decisions = await old.journal.select(every)
    assert await new.feedback.of(decisions) == await old.feedback.of(decisions)


def test_a_store_moves_to_postgres_and_back(
    heedful: Heedful, file: Path, postgres_url: str, tmp_path: Path
) -> None:
    moved = heedful("store", "move", f"sqlite:{file}", postgres_url, "--json")
    assert moved.code == 0, moved.err
    assert moved.json["verified"] is True
    assert {name: table["rows"] for name, table in moved.json["tables"].items()} == {
        "entries": len(ENTRIES) + 2,
        "states": 2,
        "decisions": 24,
        "feedback": 1,
        "evidence": 1,
        "trials": 25,
        "tombstones": 2,
    }
    with closing(Database(file)) as old, closing(PostgresDatabase(postgres_url)) as new:
        asyncio.run(_same(SqliteStore(old), PostgresStore(new)))
        again = new_entry("after the move", kind="fact", id="after")
        before = asyncio.run(PostgresStore(new).revision("b"))
        assert asyncio.run(PostgresStore(new).put("b", [again])) == 1, "new rows are numbered after the old"
        assert asyncio.run(PostgresStore(new).revision("b")) > before
    back = heedful("store", "move", postgres_url, str(tmp_path / "back.db"))
    assert (back.code, "both stores have the same content" in back.out) == (0, True), back.err
    with closing(Database(tmp_path / "back.db")) as new_file:
        assert asyncio.run(SqliteStore(new_file).entry("b", "after")) == again


class Interrupted(PostgresSide):
    """A target that fails after some batches."""

    batches = 3

    async def add(self, table: MovedTable, rows: Sequence[MovedRow]) -> None:
        await PostgresSide.add(self, table, rows)
        Interrupted.batches -= 1
        if Interrupted.batches == 0:
            raise KeyboardInterrupt


def test_an_interrupted_move_is_continued(heedful: Heedful, file: Path, postgres_url: str) -> None:
    with closing(Database(file)) as old, closing(PostgresDatabase(postgres_url)) as new:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(move.move(SqliteSide(old), Interrupted(new), batch=4))
        assert len(asyncio.run(PostgresStore(new).entries("b"))) > 0
        for command in (("bank", "ls"), ("doctor",), ("store", "move", postgres_url, "third.db")):
            place = () if command[0] == "store" else ("--store", postgres_url)
            refused = heedful(*command, *place)
            assert refused.code == 1
            assert "run the same heedful store move again" in refused.err + refused.out
        counts = asyncio.run(move.move(SqliteSide(old), PostgresSide(new)))
        assert counts["decisions"].rows == 24
        asyncio.run(_same(SqliteStore(old), PostgresStore(new)))
    assert heedful("store", "move", str(file), postgres_url).code == 0, "a finished move is verified again"


def test_a_file_that_was_moved_in_part_is_not_used(heedful: Heedful, file: Path, tmp_path: Path) -> None:
    target = tmp_path / "new.db"
    with closing(Database(target)) as new:
        asyncio.run(SqliteSide(new).note(str(file), finished=False))
    refused = heedful("bank", "ls", "--store", str(target))
    assert (refused.code, f"only a part of {file}" in refused.err) == (1, True), refused.err
    assert heedful("store", "move", str(file), str(target)).code == 0
    assert heedful("bank", "ls", "--store", str(target)).code == 0


def test_a_store_is_not_moved_into_one_with_content(
    heedful: Heedful, file: Path, postgres: PostgresStore, postgres_url: str
) -> None:
    asyncio.run(postgres.put("b", ENTRIES[:1]))
    refused = heedful("store", "move", str(file), postgres_url)
    assert (refused.code, "already has entries" in refused.err) == (2, True)


def test_a_target_that_differs_is_reported(heedful: Heedful, file: Path, postgres_url: str) -> None:
    assert heedful("store", "move", str(file), postgres_url).code == 0
    with closing(PostgresDatabase(postgres_url)) as new:
        asyncio.run(PostgresStore(new).mark("b", [Mark(entry="dozen", state="active")]))
    differs = heedful("store", "move", str(file), postgres_url)
    assert (differs.code, "states differ: 2 rows" in differs.err) == (1, True)


def test_a_missing_source_is_refused(heedful: Heedful, tmp_path: Path) -> None:
    refused = heedful("store", "move", str(tmp_path / "nothing.db"), str(tmp_path / "new.db"))
    assert (refused.code, "there is no store" in refused.err) == (2, True)
