"""Vectors are made once, in batches, and kept in the store."""

import asyncio
from collections.abc import Sequence
from copy import copy
from functools import partial

import numpy as np
import pytest

from heedful import Database, SqliteStore, StoredBank, new_entry
from heedful.memory import vectors
from heedful.memory.index import Floats
from heedful.memory.vectors import VectorCache

TEXTS = [f"entry {n}" + " again" * (n % 3) for n in range(10)]


class CountingEmbedder:
    """Gives each text a vector of its own, and fails after `most` batches."""

    def __init__(self, most: int = 100) -> None:
        self.batches: list[list[str]] = []
        self.most = most

    def embed(self, texts: Sequence[str]) -> Floats:
        if len(self.batches) == self.most:
            raise KeyboardInterrupt
        self.batches.append(list(texts))
        return np.array([[len(text), sum(map(ord, text))] for text in texts], np.float32)


def test_an_interrupted_run_keeps_its_finished_batches(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "BATCH", 4)
    with pytest.raises(KeyboardInterrupt):
        VectorCache(store.database).vectors(TEXTS, CountingEmbedder(most=2))
    assert VectorCache(store.database).missing(TEXTS) == 2
    again = CountingEmbedder()
    steps: list[tuple[int, int]] = []
    got = VectorCache(store.database, lambda *step: steps.append(step)).vectors(TEXTS, again)
    assert [len(batch) for batch in again.batches] == [2]
    assert steps == [(2, 2)]
    np.testing.assert_array_equal(got, CountingEmbedder().embed(TEXTS))


def test_vectors_that_cannot_be_stored_are_used_all_the_same(store: SqliteStore) -> None:
    store.database.path.with_name("heedful.db-vectors").write_text("a file where the folder should be")
    got = VectorCache(store.database).vectors(TEXTS, CountingEmbedder())
    np.testing.assert_array_equal(got, CountingEmbedder().embed(TEXTS))
    assert VectorCache(store.database).missing(TEXTS) == len(TEXTS)


def test_a_bank_of_a_sqlite_store_keeps_its_vectors_without_being_told(store: SqliteStore) -> None:
    asyncio.run(store.put("b", [new_entry(text, kind="rule") for text in TEXTS]))
    embedders = [CountingEmbedder(), CountingEmbedder()]
    for embedder in embedders:
        again = SqliteStore(Database(store.database.path))
        bank = StoredBank(again, "b", embedder=partial(copy, embedder))
        assert asyncio.run(bank.recall("entry 3", limit=2))
    assert [[len(batch) for batch in embedder.batches] for embedder in embedders] == [[10, 1], [1]]
