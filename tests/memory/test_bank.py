import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from heedful import Database, Entry, MemoryBank, MemorySource, Task, new_entry
from heedful.memory.bank import VIEWS
from heedful.memory.index import best
from heedful.memory.vectors import VectorCache
from heedful.testing import check_bank
from heedful.types import Audience, digest_of
from tests.making import FixedBank


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


USERS = ("ana", "bo", "cy", "")
WORDS = ("red fox", "blue whale", "red whale", "grey fox")


@pytest.mark.parametrize("method", ["bm25", "dense", "bm25_rerank"])
@given(
    owners=st.lists(st.tuples(st.sampled_from(USERS), st.sampled_from(WORDS)), min_size=1, max_size=30),
    asks=st.sampled_from(USERS),
    limit=st.integers(1, 5),
)
def test_a_memory_of_one_user_is_never_recalled_for_another_and_takes_no_place(
    method: str, owners: list[tuple[str, str]], asks: str, limit: int
) -> None:
    entries = [
        new_entry(text, kind="fact", id=f"e{place:02}", scope={"user": owner} if owner else None)
        for place, (owner, text) in enumerate(owners)
    ]

    def bank(of: Sequence[Entry]) -> MemoryBank:
        return MemoryBank("b", of, method=method, threshold=0.3, embedder=WordEmbedder)

    audience = Audience(scope={"user": asks} if asks else {}, at=0.0)
    recalled = asyncio.run(bank(entries).recall("red fox", limit=limit, audience=audience))
    assert {recall.entry.scope.get("user", asks) for recall in recalled} <= {asks}
    own = [replace(e, scope={}) for e in entries if e.scope.get("user", asks) == asks]
    alone = asyncio.run(bank(own).recall("red fox", limit=limit))
    assert [(r.entry.id, r.score) for r in recalled] == [(r.entry.id, r.score) for r in alone]


def test_a_source_drops_entries_of_others_even_if_its_bank_does_not() -> None:
    private = new_entry("Ana's door code is 7.", kind="fact", scope={"user": "ana"})
    source = MemorySource(bank=FixedBank([private]))
    assert asyncio.run(source.prepare(Task(question="Code?", scope={"user": "bo"}), None)) is None
    plan = asyncio.run(source.prepare(Task(question="Code?", scope={"user": "ana"}), None))
    assert plan is not None
    assert [recall.entry for recall in plan.recalls] == [private]


def test_an_entry_is_recalled_only_while_it_is_valid() -> None:
    price = new_entry("The red fox costs 3.", kind="fact", valid_from=10.0, valid_until=20.0)
    bank = MemoryBank("b", [price], method="bm25")
    for at, seen in ((9.9, 0), (10.0, 1), (19.9, 1), (20.0, 0)):
        assert len(asyncio.run(bank.recall("red fox", limit=1, audience=Audience(at=at)))) == seen
    assert recall(bank, "red fox") == [], "without an audience the time is now"


def test_the_views_of_a_bank_embed_a_text_once_and_are_limited_in_number() -> None:
    embedder = WordEmbedder()
    entries = [new_entry(f"red fox {n}", kind="fact", scope={"user": str(n)}) for n in range(VIEWS + 9)]
    bank = MemoryBank("b", entries, threshold=0.1, embedder=lambda: embedder)
    for _ in range(2):
        for n in range(len(entries)):
            audience = Audience(scope={"user": str(n)}, at=0.0)
            [recalled] = asyncio.run(bank.recall("red fox", limit=3, audience=audience))
            assert recalled.entry is entries[n]
    assert len(bank._views) == VIEWS
    assert embedder.embedded == len(entries) + 2 * len(entries), "each entry once, and each query"


def test_scope_and_times_make_a_version_and_entries_without_them_keep_their_digest() -> None:
    plain = new_entry("red fox", kind="rule", tags=["a"])
    assert plain.digest == digest_of(["rule", "red fox", "", ["a"]])
    limited = [
        replace(plain, scope={"user": "ana"}),
        replace(plain, valid_from=1.0),
        replace(plain, valid_until=1.0),
    ]
    assert len({entry.digest for entry in (plain, *limited)}) == 4
    assert new_entry("red fox", kind="rule", scope={"user": "ana"}).id != new_entry("red fox", kind="rule").id
