"""Decisions are written in batches, and none is lost."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from heedful import Controller, Database, ScriptedModel, arms
from heedful.decisions import decision_of
from heedful.errors import StoreError
from heedful.memory.journal import SqliteJournal
from heedful.records import Decision
from heedful.serve import batched_journal
from heedful.serve.batched_journal import BatchedJournal


@pytest.fixture
def journal(tmp_path: Path) -> SqliteJournal:
    return SqliteJournal(Database(tmp_path / "heedful.db"))


@dataclass(frozen=True, slots=True)
class WatchedJournal(SqliteJournal):
    """Fails the first writes, and says when one succeeds."""

    failures: list[str] = field(default_factory=list)
    written: asyncio.Event = field(default_factory=asyncio.Event)

    async def record_all(self, decisions: Sequence[Decision]) -> None:
        if self.failures:
            raise StoreError(self.failures.pop())
        await SqliteJournal.record_all(self, decisions)
        self.written.set()


def decisions(count: int) -> list[Decision]:
    controller = Controller(model=ScriptedModel(script=lambda prompt: "yes"), policy=arms.never())
    return [decision_of(controller.answer_sync(f"question {n}?"), at=float(n)) for n in range(count)]


def test_a_batch_is_written_soon_and_in_order(journal: SqliteJournal) -> None:
    made = decisions(5)

    async def use() -> Sequence[Decision]:
        watched = WatchedJournal(journal.database)
        batched = BatchedJournal(watched, seconds=0.001)
        for decision in made:
            await batched.record(decision)
        await watched.written.wait()
        return await journal.recent(9)

    assert [d.id for d in asyncio.run(use())] == [d.id for d in reversed(made)]


def test_find_and_close_write_what_waits(journal: SqliteJournal) -> None:
    first, second = decisions(2)

    async def use() -> tuple[Decision, int]:
        batched = BatchedJournal(journal, seconds=60)
        await batched.record(first)
        found = await batched.find(first.id)
        await batched.record(second)
        await batched.aclose()
        return found, len(await journal.recent(9))

    assert asyncio.run(use()) == (first, 2)


def test_a_failing_store_is_tried_again(journal: SqliteJournal, caplog: pytest.LogCaptureFixture) -> None:
    made = decisions(3)

    async def use() -> int:
        flaky = WatchedJournal(journal.database, ["the disk is full", "the disk is full"])
        batched = BatchedJournal(flaky, seconds=0.001)
        for decision in made:
            await batched.record(decision)
        await flaky.written.wait()
        return len(await journal.recent(9))

    assert asyncio.run(use()) == 3
    assert "not written yet" in caplog.text


def test_a_store_that_does_not_answer_fails_and_writes_nothing_twice(journal: SqliteJournal) -> None:
    class SlowJournal(SqliteJournal):
        """Writes, and does not say so."""

        async def record_all(self, decisions: Sequence[Decision]) -> None:
            await SqliteJournal.record_all(self, decisions)
            await asyncio.Event().wait()

    async def use() -> tuple[int, int]:
        batched = BatchedJournal(SlowJournal(journal.database), seconds=60, store_seconds=0.05)
        for decision in decisions_made:
            await batched.record(decision)
        with pytest.raises(StoreError, match=r"did not answer within 0\.05 s"):
            await batched.flush()
        waiting = batched.waiting
        batched.journal = journal
        await batched.aclose()
        return waiting, len(await journal.recent(99))

    decisions_made = decisions(3)
    assert asyncio.run(use()) == (3, 3)


def test_a_decision_that_cannot_be_written_does_not_keep_back_the_others(
    journal: SqliteJournal, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = decisions(2)
    broken = replace(first, id="0" * 12, answer="\ud800")  # half a character has no UTF-8

    async def use() -> tuple[int, int, list[str]]:
        batched = BatchedJournal(journal, seconds=60)
        for decision in (first, broken, second):
            await batched.record(decision)
        await batched.flush()
        stored = [decision.id for decision in await journal.recent(9)]
        await batched.aclose()
        return batched.waiting, batched.dropped, stored

    assert asyncio.run(use()) == (0, 1, [second.id, first.id])
    assert "cannot be written" in caplog.text


def test_a_stop_tries_a_failing_store_again_and_counts_what_is_lost(
    journal: SqliteJournal, caplog: pytest.LogCaptureFixture
) -> None:
    async def use(failures: int) -> int:
        flaky = WatchedJournal(journal.database, ["the disk is full"] * failures)
        batched = BatchedJournal(flaky, seconds=60)
        await batched.record(decisions_made.pop())
        await batched.aclose()
        return len(await journal.recent(9))

    decisions_made = decisions(2)
    assert asyncio.run(use(failures=4)) == 1
    assert "lost" not in caplog.text
    assert asyncio.run(use(failures=9)) == 1
    assert "1 decisions are lost" in caplog.text


def test_a_cancelled_reader_does_not_write_a_batch_twice(journal: SqliteJournal) -> None:
    made = decisions(20)

    async def use() -> int:
        batched = BatchedJournal(journal, seconds=60)
        for decision in made:
            await batched.record(decision)
            reader = asyncio.create_task(batched.flush())
            await asyncio.sleep(0)
            reader.cancel()
            with suppress(asyncio.CancelledError):
                await reader
        await batched.aclose()
        return len(await journal.recent(99))

    assert asyncio.run(use()) == 20


def test_decisions_beyond_the_limit_are_counted_as_dropped(
    journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batched_journal, "MOST_WAITING", 2)

    async def use() -> tuple[int, int]:
        batched = BatchedJournal(journal, seconds=60)
        for decision in decisions_made:
            await batched.record(decision)
        state = (batched.waiting, batched.dropped)
        await batched.aclose()
        return state

    decisions_made = decisions(3)
    assert asyncio.run(use()) == (2, 1)
