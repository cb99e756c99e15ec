"""A bank that follows its store: what another process changes is seen here within a second."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from heedful.memory.bank import MemoryBank
from heedful.ports import Store
from heedful.types import Entry, Recall, Spec

if TYPE_CHECKING:
    from heedful.memory.ranking import Embedder
    from heedful.memory.vectors import VectorCache

CHECK_SECONDS = 0.5
"""How long a revision counts as the newest."""


class StoredBank:
    """Recalls from a snapshot, asks the store for its revision, and takes a new snapshot when that grew.

    A new index is built in the background. Until it is ready the old one serves, without the entries
    that have been changed, retired or quarantined since.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        *,
        method: str = "dense",
        threshold: float = 0.6,
        embedder: "Callable[[], Embedder] | None" = None,
        cache: "VectorCache | None" = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._store = store
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

    async def recall(self, query: str, *, limit: int) -> Sequence[Recall]:
        await self._follow()
        newest, indexed = self._newest, self._indexed
        if indexed is newest:
            return await indexed.recall(query, limit=limit)
        live, served = _versions(newest), _versions(indexed)
        found = await indexed.recall(query, limit=limit + len(served - live))
        return [recall for recall in found if (recall.entry.id, recall.entry.digest) in live][:limit]

    async def _follow(self) -> None:
        """Take a new snapshot if the store has a newer revision, and see that its index is built."""
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
        except Exception:  # the old index goes on serving, and the next recall tries again
            logging.getLogger("heedful").exception("the index of bank %s was not rebuilt", self.name)
        else:
            self._indexed = bank


def _versions(bank: MemoryBank) -> set[tuple[str, str]]:
    return {(entry.id, entry.digest) for entry in bank.entries() if entry.live}
