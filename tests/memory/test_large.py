"""A large bank is recalled through its index as exactly as a small one."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful import Database, MemoryBank, SqliteStore, StoredBank, new_entry
from heedful.control import run_sync
from heedful.memory import large
from heedful.memory.index import Embedder, Floats
from heedful.memory.large import LargeBank
from heedful.memory.vectors import VectorCache
from heedful.testing import check_bank
from heedful.types import Audience, Entry, Mark
from tests.memory.test_bank import USERS, WORDS, WordEmbedder

NOW = Audience(at=0.0)


class TopicEmbedder:
    """Texts such as `topic 3 word 7` are near to others of their topic, as sentences are."""

    def __init__(self, width: int = 48) -> None:
        self.width = width
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> Floats:
        self.texts += texts
        vectors = np.stack([self._vector(text) for text in texts])
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)

    def _vector(self, text: str) -> Floats:
        numbers = [int(word) for word in text.split() if word.isdigit()]
        parts = [
            np.random.default_rng([place, n]).standard_normal(self.width) for place, n in enumerate(numbers)
        ]
        return np.asarray(parts[0] + 0.6 * sum(parts[1:], np.zeros(self.width)), np.float32)


def topics(count: int, start: int = 0) -> list[Entry]:
    return [
        new_entry(f"topic {n % 40} word {n}", kind="fact", id=f"e{n:05}") for n in range(start, start + count)
    ]


def large_bank(store: SqliteStore, embedder: Embedder | None = None, threshold: float = 0.3) -> LargeBank:
    """A bank whose index covers every entry that the store has now."""
    chosen = embedder or TopicEmbedder()
    bank = LargeBank(VectorCache(store.database), "b", threshold=threshold, embedder=lambda: chosen, tail=0)
    bank.follow()
    if bank.due:
        bank.extend()
    return bank


def ids(
    bank: LargeBank | StoredBank | MemoryBank, query: str, limit: int = 5, who: Audience = NOW
) -> list[str]:
    return [recall.entry.id for recall in asyncio.run(bank.recall(query, limit=limit, audience=who))]


@pytest.fixture
def entries(store: SqliteStore) -> list[Entry]:
    written = topics(800)
    asyncio.run(store.put("b", written))
    return written


def test_an_indexed_bank_conforms(tmp_path: Path) -> None:
    numbers = iter(range(100))

    def make(entries: Sequence[Entry]) -> StoredBank:
        store = SqliteStore(Database(tmp_path / f"{next(numbers)}.db"))
        run_sync(store.put("b", entries))
        if entries:
            large_bank(store, WordEmbedder(), 0.3)
        bank = StoredBank(store, "b", threshold=0.3, embedder=WordEmbedder, index_above=0)
        run_sync(bank.recall("anything", limit=1))
        assert not entries or (isinstance(bank._large, LargeBank) and bank._large.indexed == len(entries))
        return bank

    asyncio.run(check_bank(make))


def test_the_index_finds_what_exact_search_finds_with_the_same_scores(
    store: SqliteStore, entries: list[Entry]
) -> None:
    bank, exact = large_bank(store), MemoryBank("b", entries, threshold=0.3, embedder=TopicEmbedder)
    assert bank.indexed == len(entries)
    hits = total = 0
    for n in range(50):
        query = f"topic {n % 40} word {10_000 + n}"
        wanted = {r.entry.id: r.score for r in asyncio.run(exact.recall(query, limit=5))}
        got = {r.entry.id: r.score for r in asyncio.run(bank.recall(query, limit=5))}
        hits, total = hits + len(wanted.keys() & got.keys()), total + len(wanted)
        assert all(got[id] == pytest.approx(wanted[id], abs=1e-6) for id in got.keys() & wanted.keys())
    assert total > 200
    assert hits / total >= 0.98


@settings(max_examples=20)
@given(
    owners=st.lists(st.tuples(st.sampled_from(USERS), st.sampled_from(WORDS)), min_size=1, max_size=30),
    asks=st.sampled_from(USERS),
    limit=st.integers(1, 5),
    indexed=st.integers(0, 30),
)
def test_a_memory_of_one_user_is_never_recalled_for_another_and_takes_no_place(
    owners: list[tuple[str, str]],
    asks: str,
    limit: int,
    indexed: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    entries = [
        new_entry(text, kind="fact", id=f"e{place:02}", scope={"user": owner} if owner else None)
        for place, (owner, text) in enumerate(owners)
    ]
    store = SqliteStore(Database(tmp_path_factory.mktemp("scopes") / "s.db"))
    asyncio.run(store.put("b", entries[:indexed]))
    bank = large_bank(store, WordEmbedder())
    asyncio.run(store.put("b", entries[indexed:]))
    bank.follow()
    who = Audience(scope={"user": asks} if asks else {}, at=0.0)
    own = [replace(e, scope={}) for e in entries if e.scope.get("user", asks) == asks]
    alone = MemoryBank("b", own, threshold=0.3, embedder=WordEmbedder)
    assert ids(bank, "red fox", limit, who) == ids(alone, "red fox", limit)


def test_a_scope_with_few_entries_among_many_loses_none(store: SqliteStore, entries: list[Entry]) -> None:
    own = [replace(entry, id=f"own{n}", scope={"user": "ana"}) for n, entry in enumerate(entries[::150])]
    others = [replace(entry, scope={"user": "bo"}) for entry in entries]
    asyncio.run(store.put("b", [*others, *own]))
    bank = large_bank(store, threshold=-1.0)
    exact = MemoryBank("b", own, threshold=-1.0, embedder=TopicEmbedder)
    ana = Audience(scope={"user": "ana"}, at=0.0)
    assert ids(bank, "topic 7 word 1", 5, ana) == ids(exact, "topic 7 word 1", 5, ana)
    assert len(ids(bank, "topic 7 word 1", 5, ana)) == 5
    assert ids(bank, "topic 7 word 1", 5) == [], "nobody sees the entries of others"


def test_a_retired_entry_is_gone_at_once_and_its_place_is_taken(
    store: SqliteStore, entries: list[Entry]
) -> None:
    bank = large_bank(store)
    first, second, *_ = ids(bank, entries[7].text)
    asyncio.run(store.mark("b", [Mark(entry=first, state="retired")]))
    assert ids(bank, entries[7].text, 1) == [second], "the columns still say that it is live"
    bank.follow()
    assert first not in ids(bank, entries[7].text)
    asyncio.run(store.mark("b", [Mark(entry=first, state="active")]))
    bank.follow()
    assert ids(bank, entries[7].text, 1) == [first]


def test_a_new_entry_and_a_new_version_need_one_vector_each_and_no_new_index(
    store: SqliteStore, entries: list[Entry]
) -> None:
    embedder = TopicEmbedder()
    bank = large_bank(store, embedder)
    embedder.texts.clear()
    asyncio.run(store.put("b", [new_entry("topic 99 word 1", kind="fact", id="new")]))
    asyncio.run(store.put("b", [new_entry("topic 98 word 1", kind="fact", id=entries[7].id)]))
    bank.follow()
    assert embedder.texts == ["topic 99 word 1", "topic 98 word 1"]
    assert bank.indexed == len(entries)
    assert ids(bank, "topic 99 word 1", 1) == ["new"]
    assert ids(bank, "topic 98 word 1", 1) == [entries[7].id]
    assert entries[7].id not in ids(bank, entries[7].text), "the old version is not recalled"


def test_an_index_grows_from_the_one_that_exists(store: SqliteStore, entries: list[Entry]) -> None:
    large_bank(store)
    asyncio.run(store.put("b", topics(300, start=len(entries))))
    again = LargeBank(VectorCache(store.database), "b", threshold=0.3, embedder=TopicEmbedder, tail=0)
    again.follow()
    assert again.indexed == len(entries)
    steps: list[tuple[int, int]] = []
    again.extend(on_progress=lambda *step: steps.append(step))
    assert steps == [(300, 300)], "only new rows are added"
    assert again.indexed == len(entries) + 300
    assert ids(again, "topic 20 word 900", 1) == ["e00900"]


def test_entries_with_the_same_text_are_ordered_by_id(store: SqliteStore) -> None:
    same = [new_entry("topic 1 word 1", kind="fact", id=f"s{n:03}") for n in reversed(range(200))]
    asyncio.run(store.put("b", same))
    assert ids(large_bank(store), "topic 1 word 1", 3) == ["s000", "s001", "s002"]


def folder(store: SqliteStore) -> Path:
    return store.database.path.with_name(f"{store.database.path.name}-vectors")


@pytest.mark.parametrize(
    ("change", "pattern"),
    [
        *(("delete", pattern) for pattern in ("*.index", "*.seal", "*.npz", "*.db", "*.f32", "*")),
        *(("cut", pattern) for pattern in ("*.index", "*.seal", "*.npz", "*.db", "*.f32", "*")),
        *(("overwrite", pattern) for pattern in ("*.index", "*.seal", "*.npz", "*.db")),
    ],
)
def test_the_cache_may_be_deleted_or_damaged_at_any_time(
    store: SqliteStore, change: str, pattern: str
) -> None:
    entries = topics(120)
    asyncio.run(store.put("b", entries))
    wanted = ids(large_bank(store), entries[7].text)
    files = sorted(folder(store).glob(pattern))
    assert files
    for file in files:
        if change == "delete":
            file.unlink()
        elif change == "cut":
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        else:
            file.write_bytes(b"x" * file.stat().st_size)
    again = large_bank(store)
    assert ids(again, entries[7].text) == wanted
    assert again.indexed == len(entries)


def test_the_cache_of_a_store_that_was_replaced_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    for number, written in enumerate((topics(100), topics(100, start=500))):
        for file in tmp_path.glob("s.db*"):
            if file.is_file():
                file.unlink()
        store = SqliteStore(Database(path))
        asyncio.run(store.put("b", written))
        assert ids(large_bank(store), written[3].text, 1) == [written[3].id], number
        store.database.close()


def test_two_banks_of_one_store_share_vectors_and_not_entries(
    store: SqliteStore, entries: list[Entry]
) -> None:
    large_bank(store)
    asyncio.run(store.put("other", [replace(entry, id=f"o{entry.id}") for entry in entries[:50]]))
    embedder = TopicEmbedder()
    other = LargeBank(VectorCache(store.database), "other", threshold=0.3, embedder=lambda: embedder, tail=0)
    other.follow()
    assert embedder.texts == []
    other.extend()
    assert ids(other, entries[7].text, 1) == [f"o{entries[7].id}"]


def test_a_bank_above_the_limit_is_recalled_by_the_index_and_grows_it_in_the_background(
    store: SqliteStore, entries: list[Entry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large, "TAIL", 100)
    small = StoredBank(store, "b", embedder=TopicEmbedder, index_above=len(entries))
    assert ids(small, entries[7].text, 1) == [entries[7].id]
    assert small._large is None

    async def story() -> StoredBank:
        bank = StoredBank(store, "b", embedder=TopicEmbedder, index_above=len(entries) - 1)
        await bank.recall(entries[7].text, limit=1)
        assert bank._building is not None
        await bank._building
        return bank

    bank = asyncio.run(story())
    assert isinstance(bank._large, LargeBank)
    assert bank._large.indexed == len(entries)
    assert (bank.digest, bank.spec) == (small.digest, small.spec)
    assert list(bank.entries()) == list(small.entries())


def test_without_the_extra_recall_is_exact(
    store: SqliteStore,
    entries: list[Entry],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(large, "absent", lambda extra: ["usearch"])
    bank = StoredBank(store, "b", embedder=TopicEmbedder, index_above=0)
    assert ids(bank, entries[7].text, 1) == [entries[7].id]
    assert "pip install 'heedful[index]'" in caplog.text


def test_a_cache_that_cannot_be_written_leaves_the_snapshot(store: SqliteStore, entries: list[Entry]) -> None:
    folder(store).write_text("a file where the folder should be")
    bank = StoredBank(store, "b", embedder=TopicEmbedder, index_above=0)
    assert ids(bank, entries[7].text, 1) == [entries[7].id]
    assert bank._large is None


def test_the_digest_is_that_of_the_store_now_and_is_kept_between_runs(
    store: SqliteStore, entries: list[Entry]
) -> None:
    bank = large_bank(store)

    def expected() -> str:
        return MemoryBank("b", asyncio.run(store.entries("b"))).digest

    assert bank.digest == large_bank(store).digest == expected()
    asyncio.run(store.mark("b", [Mark(entry=entries[7].id, state="retired")]))
    assert bank.digest == large_bank(store).digest == expected()
    [kept] = folder(store).glob("*.digest")
    kept.write_bytes(b"\xff")
    assert large_bank(store).digest == expected()
