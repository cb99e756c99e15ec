"""A bank that follows its store."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from heedful import Database, SqliteStore, StoredBank, StoreError, new_entry
from heedful.control import run_sync
from heedful.memory import stored
from heedful.testing import ENTRIES, check_bank
from heedful.types import Entry, Mark

QUERY = "When do parcels leave the warehouse?"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def recalled(bank: StoredBank) -> list[str]:
    return [recall.entry.id for recall in await bank.recall(QUERY, limit=5)]


async def settled(bank: StoredBank) -> list[str]:
    """What is recalled once a new index is built."""
    await bank.recall(QUERY, limit=5)
    if bank._building is not None:
        await bank._building
    return await recalled(bank)


def test_a_stored_bank_conforms(tmp_path: Path) -> None:
    made = iter(range(100))

    def make(entries: Sequence[Entry]) -> StoredBank:
        """A bank that has followed its store once: an event loop is running here, so in a thread."""
        store = SqliteStore(Database(tmp_path / f"{next(made)}.db"))
        bank = StoredBank(store, "b", method="bm25")

        async def filled() -> None:
            await store.put("b", entries)
            await bank.recall(QUERY, limit=1)

        run_sync(filled())
        return bank

    asyncio.run(check_bank(make))


def test_the_first_question_after_a_change_sees_it(store: SqliteStore) -> None:
    clock = Clock()
    bank = StoredBank(store, "b", method="bm25", clock=clock)

    async def story() -> None:
        await store.put("b", ENTRIES)
        assert await recalled(bank) == ["parcels", "parcels-twin"]
        before = bank.digest
        await store.mark("b", [Mark(entry="parcels", state="retired")])
        assert await recalled(bank) == ["parcels", "parcels-twin"], "a revision counts for half a second"
        clock.now += 0.6
        assert await recalled(bank) == ["parcels-twin"]
        assert bank.digest != before
        await store.put("b", [new_entry("Parcels leave at five.", kind="fact", id="five")])
        clock.now += 0.6
        assert set(await recalled(bank)) == {"parcels-twin", "five"}
        await store.put(
            "b", [new_entry("Parcels leave the warehouse at six.", kind="rule", id="parcels-twin")]
        )
        clock.now += 0.6
        found = {recall.entry.id: recall.entry.text for recall in await bank.recall(QUERY, limit=5)}
        assert found.keys() == {"parcels-twin", "five"}
        assert "six" in found["parcels-twin"]

    asyncio.run(story())


def test_a_store_that_fails_is_a_fault_of_recall_and_not_a_stale_answer(store: SqliteStore) -> None:
    clock = Clock()
    bank = StoredBank(store, "b", method="bm25", clock=clock)
    asyncio.run(store.put("b", ENTRIES))
    asyncio.run(recalled(bank))
    clock.now += 1
    store.database.close()
    with pytest.raises(StoreError):
        asyncio.run(recalled(bank))


def test_while_a_new_index_is_built_the_old_one_serves_without_what_was_retired(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The embedder waits for the event loop: if building blocked the loop, neither would ever go on."""
    monkeypatch.setattr(stored, "INDEX_SECONDS", 0.01)
    clock, ticked = Clock(), threading.Event()

    class Patient:
        def embed(self, texts: Sequence[str]) -> NDArray[Any]:
            if texts[0] != QUERY:
                assert ticked.wait(30), "the event loop did not run"
            return np.ones((len(texts), 4), dtype=np.float32) / 2

    bank = StoredBank(store, "b", embedder=Patient, threshold=0.0, clock=clock)

    async def story() -> None:
        ticked.set()
        await store.put("b", ENTRIES)
        await recalled(bank)
        ticked.clear()
        await store.put("b", [new_entry("One more.", kind="fact", id="more")])
        await store.mark("b", [Mark(entry="parcels", state="retired")])
        clock.now += 1
        meanwhile = await recalled(bank)
        assert "parcels-twin" in meanwhile, "the old index answers"
        assert not {"more", "parcels"} & set(meanwhile)
        ticked.set()
        after = await settled(bank)
        assert "more" in after
        assert "parcels" not in after

    asyncio.run(story())


RETIRING = """
import asyncio, sys
from heedful import Database, SqliteStore
from heedful.types import Mark
store = SqliteStore(Database(sys.argv[1]))
asyncio.run(store.mark("b", [Mark(entry="parcels", state="retired", reason="harm")]))
print("acknowledged", flush=True)
sys.stdin.read()
"""


def test_a_retirement_in_another_process_is_seen_within_a_second(store: SqliteStore) -> None:
    bank = StoredBank(store, "b", method="bm25")
    asyncio.run(store.put("b", ENTRIES))
    assert asyncio.run(recalled(bank)) == ["parcels", "parcels-twin"]
    command = [sys.executable, "-c", RETIRING, str(store.database.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "acknowledged\n"
        other.kill()
    acknowledged = time.monotonic()
    while time.monotonic() < acknowledged + 1.0:  # a revision that was asked for before counts this long
        found = asyncio.run(recalled(bank))
    assert found == ["parcels-twin"]
