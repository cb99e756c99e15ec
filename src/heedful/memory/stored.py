"""A bank that follows its store: it picks up changes made by other processes within a second."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from heedful.memory.bank import MemoryBank
from heedful.memory.sqlite import SqliteStore
from heedful.ports import Store
from heedful.types import DEFAULT_RECALL, DEFAULT_THRESHOLD, Audience, Entry, Recall, Spec

if TYPE_CHECKING:
    from heedful.memory.index import Embedder
    from heedful.memory.vectors import VectorCache

CHECK_SECONDS = 0.5
"""Minimum time between two checks of the store's revision."""


class StoredBank:
    """Recalls from a snapshot and takes a new one when the store's revision increases.

    The new index is built in the background. Until it is ready, the old index is used without the entries
    that have since been changed, retired or quarantined.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        *,
        method: str = DEFAULT_RECALL,
        threshold: float = DEFAULT_THRESHOLD,
        embedder: "Callable[[], Embedder] | None" = None,
        cache: "VectorCache | None" = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """By default a SQLite store keeps the entries' vectors too."""
        self.name = name
        self._store = store
        cache = _cache_in(store) if cache is None else cache
        self._clock = clock

        def snapshot_of(entries: Sequence[Entry]) -> MemoryBank:
            return MemoryBank(
                name, entries, method=method, threshold=threshold, embedder=embedder, cache=cache
            )

        self._snapshot_of = snapshot_of
        self._newest = self._indexed = self._snapshot_of(())
        self._revision = -1
        self._checked = 0.0
        self._building: asyncio.Task[None] | None = None

    @property
    def digest(self) -> str:
        return self._newest.digest

    @property
    def spec(self) -> Spec:
        return self._newest.spec

    def entries(self) -> Sequence[Entry]:
        return self._newest.entries()

    async def recall(self, query: str, *, limit: int, audience: Audience | None = None) -> Sequence[Recall]:
        await self._follow()
        newest, indexed = self._newest, self._indexed
        if indexed is newest:
            return await indexed.recall(query, limit=limit, audience=audience)
        live, served = _versions(newest), _versions(indexed)
        recalls = await indexed.recall(query, limit=limit + len(served - live), audience=audience)
        return [recall for recall in recalls if (recall.entry.id, recall.entry.digest) in live][:limit]

    async def _follow(self) -> None:
        """Take a new snapshot if the store has a newer revision, and start building its index."""
        if self._revision < 0 or self._clock() - self._checked >= CHECK_SECONDS:
            asked_at, revision = self._clock(), await self._store.revision(self.name)
            if revision != self._revision:
                self._newest = self._snapshot_of(await self._store.entries(self.name))
                if self._revision < 0:
                    self._indexed = self._newest
                self._revision = revision
            self._checked = asked_at
        if self._indexed is not self._newest and (self._building is None or self._building.done()):
            self._building = asyncio.create_task(self._build(self._newest))

    async def _build(self, bank: MemoryBank) -> None:
        try:
            await bank.build()
        except Exception:  # the old index stays in use, and the next recall tries again
            logging.getLogger("heedful").exception("the index of bank %s could not be rebuilt", self.name)
        else:
            self._indexed = bank


def _cache_in(store: Store) -> "VectorCache | None":
    if not isinstance(store, SqliteStore):
        return None
    from heedful.memory.vectors import VectorCache

    return VectorCache(store.database)


def _versions(bank: MemoryBank) -> set[tuple[str, str]]:
    return {(entry.id, entry.digest) for entry in bank.entries() if entry.live}
