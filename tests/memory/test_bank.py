import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from heedful import Database, MemoryBank, new_entry
from heedful.memory.index import best
from heedful.memory.vectors import VectorCache
from heedful.testing import check_bank


class WordEmbedder:
    """Unit vectors by words: enough to tell texts apart without weights."""

    def __init__(self) -> None:
        self.embedded = 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.embedded += len(texts)
        vectors = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().replace("?", "").replace(".", "").split():
                vectors[row, sum(map(ord, word)) % 64] += 1
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


@pytest.mark.parametrize("method", ["bm25", "dense", "bm25_rerank"])
def test_every_way_to_recall_conforms(method: str) -> None:
    asyncio.run(
        check_bank(
            lambda entries: MemoryBank("b", entries, method=method, threshold=0.3, embedder=WordEmbedder)
        )
    )


@pytest.mark.engine
@pytest.mark.parametrize("method", ["dense", "bm25_rerank"])
def test_recall_with_minilm_conforms(minilm: Path, method: str) -> None:
    asyncio.run(check_bank(lambda entries: MemoryBank("b", entries, method=method)))


def recall(bank: MemoryBank, query: str, limit: int = 3) -> list[str]:
    return [r.entry.id for r in asyncio.run(bank.recall(query, limit=limit))]


def test_dense_recall_drops_what_is_below_the_threshold() -> None:
    entries = [
        new_entry("red fox runs", kind="rule", id="fox"),
        new_entry("blue whale", kind="rule", id="whale"),
    ]
    assert recall(MemoryBank("b", entries, threshold=0.9, embedder=WordEmbedder), "red fox runs") == ["fox"]
    assert recall(MemoryBank("b", entries, threshold=0.9, embedder=WordEmbedder), "green tea") == []


def test_bm25_does_not_recall_entries_that_share_no_word() -> None:
    entries = [new_entry("red fox", kind="rule", id="fox"), new_entry("blue whale", kind="rule", id="whale")]
    assert recall(MemoryBank("b", entries, method="bm25"), "a quick fox?") == ["fox"]
    assert recall(MemoryBank("b", entries, method="bm25"), "of the and") == []


def test_rerank_orders_lexical_hits_by_similarity() -> None:
    entries = [
        new_entry("fox fox fox", kind="rule", id="a"),
        new_entry("fox likes red apples", kind="rule", id="b"),
        new_entry("whale", kind="rule", id="c"),
    ]
    bank = MemoryBank("b", entries, method="bm25_rerank", embedder=WordEmbedder)
    assert recall(bank, "fox likes red pears") == ["b", "a"]


def test_vectors_are_kept_between_runs(tmp_path: Path) -> None:
    cache = VectorCache(Database(tmp_path / "s.db"))
    entries = [new_entry("red fox", kind="rule"), new_entry("blue whale", kind="rule")]
    first, second = WordEmbedder(), WordEmbedder()
    recall(MemoryBank("b", entries, embedder=lambda: first, cache=cache), "fox")
    recall(MemoryBank("b", entries, embedder=lambda: second, cache=cache), "fox")
    assert (first.embedded, second.embedded) == (3, 1)


@given(
    scores=st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=1, max_size=40),
    limit=st.integers(1, 10),
    at_least=st.sampled_from([0.0, 0.5, 1.1]),
)
def test_best_is_the_sorted_head_with_ties_by_id(scores: list[float], limit: int, at_least: float) -> None:
    ids = [f"e{(7 * i) % 41:02d}" for i in range(len(scores))]
    expected = sorted((i for i, s in enumerate(scores) if s >= at_least), key=lambda i: (-scores[i], ids[i]))[
        :limit
    ]
    assert [place for place, _ in best(np.array(scores, dtype=np.float32), ids, limit, at_least)] == expected
