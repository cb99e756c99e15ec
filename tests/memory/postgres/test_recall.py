"""Recall inside Postgres equals exact recall, and follows changes of other servers."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import count

import numpy as np
import pytest
from numpy.typing import NDArray

from heedful import MemoryBank, StoredBank, new_entry
from heedful.control import run_sync
from heedful.memory.postgres.database import PostgresDatabase
from heedful.memory.postgres.recall import PostgresBank
from heedful.memory.postgres.store import PostgresStore
from heedful.memory.postgres.vectors import read_vector
from heedful.testing import ENTRIES, check_bank
from heedful.types import Audience, Entry, Mark
from tests.postgres_server import PostgresServer

TOPICS = 40
Floats = NDArray[np.float32]


class TopicEmbedder:
    """Texts that begin with the same topic are near each other; 384 numbers, as the index needs."""

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> Floats:
        self.embedded += texts
        vectors = np.stack([_direction(text.split(" ")[0]) * 1.5 + _direction(text) for text in texts])
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def _direction(text: str) -> Floats:
    seed = int.from_bytes(sha256(text.encode()).digest()[:8], "big")
    drawn = np.random.default_rng(seed).normal(size=384)
    return np.asarray(drawn / np.linalg.norm(drawn), np.float32)


def some_entries(count: int) -> list[Entry]:
    """Entries of many topics: every third belongs to a user, every fifth is valid for some time."""
    return [
        new_entry(
            f"topic{place % TOPICS} text {place}",
            kind="fact",
            id=f"e{place}",
            scope={"user": f"u{place % 7}"} if place % 3 == 0 else {},
            valid_until=10.0 if place % 5 == 0 else None,
            valid_from=3.0 if place % 11 == 0 else None,
        )
        for place in range(count)
    ]


def large(store: PostgresStore, embedder: TopicEmbedder, name: str = "b") -> StoredBank:
    return StoredBank(store, name, threshold=0.5, embedder=lambda: embedder, index_above=0)


async def recalled(bank: StoredBank | MemoryBank, query: str, audience: Audience) -> list[tuple[str, float]]:
    recalls = await bank.recall(query, limit=5, audience=audience)
    return [(recall.entry.id, recall.score) for recall in recalls]


def test_filtered_recall_equals_exact_recall(postgres: PostgresStore) -> None:
    entries, embedder = some_entries(2000), TopicEmbedder()
    exact = MemoryBank("b", entries, threshold=0.5, embedder=lambda: embedder)
    bank = large(postgres, embedder)
    audiences = [
        Audience(at=1.0),
        Audience(at=20.0, scope={"user": "u1"}),
        Audience(at=5.0, scope={"user": "u2", "app": "x"}),
        Audience(at=5.0, scope={f"key{place}": "x" for place in range(8)}),
    ]
    hits = wanted = 0

    async def story() -> None:
        nonlocal hits, wanted
        await postgres.put("b", entries)
        for place in range(60):
            query, audience = f"topic{place % TOPICS} question {place}", audiences[place % 4]
            right, near = await recalled(exact, query, audience), await recalled(bank, query, audience)
            assert len(near) == len(right)
            by_id = dict(right)
            for id, score in near:
                hits += id in by_id
                assert score == pytest.approx(by_id.get(id, score), abs=1e-6)
            wanted += len(right)

    asyncio.run(story())
    assert wanted > 200
    assert hits / wanted >= 0.98


def test_a_small_scope_is_found_among_many_entries_of_others(postgres: PostgresStore) -> None:
    entries, embedder = some_entries(600), TopicEmbedder()
    mine = [
        new_entry(f"topic1 mine {place}", kind="fact", id=f"m{place}", scope={"user": "ana"})
        for place in range(3)
    ]
    public = [replace(entry, scope={"user": "somebody"}) for entry in entries]

    async def story() -> list[str]:
        await postgres.put("b", [*public, *mine])
        recalls = await large(postgres, embedder).recall(
            "topic1 question", limit=5, audience=Audience(at=5.0, scope={"user": "ana"})
        )
        return [recall.entry.id for recall in recalls]

    assert sorted(asyncio.run(story())) == ["m0", "m1", "m2"]


def test_entries_with_the_same_text_are_ordered_by_id(postgres: PostgresStore) -> None:
    twins = [new_entry("topic1 the same", kind="fact", id=f"t{place:03}") for place in range(200)]

    async def story() -> list[str]:
        await postgres.put("b", list(reversed(twins)))
        recalls = await large(postgres, TopicEmbedder()).recall("topic1 the same", limit=3)
        return [recall.entry.id for recall in recalls]

    assert asyncio.run(story()) == ["t000", "t001", "t002"]


def test_a_retirement_counts_at_once_and_a_new_text_when_it_is_embedded(postgres: PostgresStore) -> None:
    embedder = TopicEmbedder()
    bank = large(postgres, embedder)

    async def ids() -> list[str]:
        return [recall.entry.id for recall in await bank.recall("topic1 text 1", limit=2)]

    async def story() -> None:
        await postgres.put("b", [entry for entry in some_entries(200) if not entry.limited])
        assert (await ids())[0] == "e1"
        await postgres.mark("b", [Mark(entry="e1", state="retired")])
        assert "e1" not in await ids()
        await postgres.put("b", [new_entry("topic1 text 1", kind="fact", id="again")])
        bank._checked = -1.0
        await ids()
        assert bank._building is not None
        await bank._building
        assert (await ids())[0] == "again"
        assert bank.digest == MemoryBank("b", await postgres.entries("b")).digest
        await postgres.put("b", [new_entry("topic2 other", kind="fact", id="again")])
        assert "again" not in await ids(), "a new version has no vector yet"

    asyncio.run(story())
    assert isinstance(bank._large, PostgresBank)


def test_a_bank_below_the_size_is_exact_and_its_vectors_are_shared(
    postgres: PostgresStore, postgres_url: str
) -> None:
    first, second = TopicEmbedder(), TopicEmbedder()
    other = PostgresStore(PostgresDatabase(postgres_url))

    async def story() -> None:
        await postgres.put("b", ENTRIES)
        for store, embedder in ((postgres, first), (other, second)):
            bank = StoredBank(store, "b", threshold=-1.0, embedder=lambda embedder=embedder: embedder)  # type: ignore[misc]
            await bank.recall("parcels", limit=1)
        await other.aclose()

    asyncio.run(story())
    assert len(first.embedded) > len(ENTRIES) - 1
    assert second.embedded == ["parcels"], "the other server embedded the entries"


def test_a_stored_vector_is_the_same_to_the_last_bit(postgres: PostgresStore) -> None:
    embedder = TopicEmbedder()
    texts = [f"topic{place} {place}" for place in range(20)]
    cache = postgres.vector_cache()
    assert cache.missing(texts) == 20
    fresh = cache.vectors(texts, embedder)
    assert cache.missing(texts) == 0
    assert np.array_equal(cache.vectors(texts, embedder), fresh)


def test_vectors_of_another_width_are_recalled_from_a_snapshot(
    postgres: PostgresStore, caplog: pytest.LogCaptureFixture
) -> None:
    class Narrow:
        def embed(self, texts: Sequence[str]) -> Floats:
            return np.ones((len(texts), 1), np.float32)

    async def story() -> int:
        await postgres.put("b", ENTRIES)
        bank = StoredBank(postgres, "b", embedder=Narrow, index_above=0)
        return len(await bank.recall("x", limit=2))

    assert asyncio.run(story()) == 2
    assert "recalled from a snapshot" in caplog.text


def test_a_bank_that_stays_in_postgres_conforms(postgres: PostgresStore) -> None:
    numbers = count()

    def make(entries: Sequence[Entry]) -> StoredBank:
        """A bank that has followed its store once: an event loop is running here, so in a thread."""
        name = f"b{next(numbers)}"
        bank = StoredBank(postgres, name, threshold=-1.0, embedder=WordEmbedder, index_above=0)

        async def filled() -> None:
            await postgres.put(name, entries)
            await bank.recall("x", limit=1)

        run_sync(filled())
        return bank

    asyncio.run(check_bank(make))


class WordEmbedder:
    """The share of common words."""

    def embed(self, texts: Sequence[str]) -> Floats:
        vectors = np.stack([sum(map(_direction, set(_words(text))), np.zeros(384)) for text in texts])
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def _words(text: str) -> list[str]:
    return ["", *text.lower().strip("?.").split()]


async def next_change(store: PostgresStore, since: int) -> int:
    number = await asyncio.to_thread(store.feed.next_change, "b", since, 30.0)
    assert number != since
    return number


def test_a_change_is_announced_to_other_servers(postgres: PostgresStore, postgres_url: str) -> None:
    """The clock of the bank stands still, so only the announcement tells it."""
    other = PostgresStore(PostgresDatabase(postgres_url))
    bank = StoredBank(other, "b", method="bm25", clock=lambda: 0.0)

    async def ids() -> list[str]:
        recalls = await bank.recall("When do parcels leave the warehouse?", limit=5)
        return [recall.entry.id for recall in recalls]

    async def story() -> None:
        await postgres.put("b", ENTRIES)
        assert await ids() == ["parcels", "parcels-twin"]
        listening = await next_change(other, other.changes("b"))
        await postgres.mark("b", [Mark(entry="parcels", state="retired")])
        await next_change(other, listening)
        assert await ids() == ["parcels-twin"]

    asyncio.run(story())
    asyncio.run(other.aclose())


def test_a_listener_that_lost_its_connection_counts_everything_as_changed_and_listens_again(
    postgres: PostgresStore, postgres_server: PostgresServer, postgres_url: str
) -> None:
    async def story() -> None:
        now = await next_change(postgres, postgres.changes("b"))
        ended = postgres_server.run(
            postgres_url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE query = 'LISTEN heedful' AND datname = current_database()",
        )
        assert ended == [(True,)]
        now = await next_change(postgres, now)  # it broke
        now = await next_change(postgres, now)  # it is back
        await postgres.put("b", ENTRIES)
        await next_change(postgres, now)

    asyncio.run(story())


def test_a_vector_is_read_as_pgvector_sends_it() -> None:
    sent = b"\x00\x02\x00\x00" + np.array([1.5, -2.0], ">f4").tobytes()
    assert read_vector(sent).tolist() == [1.5, -2.0]
