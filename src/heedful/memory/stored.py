"""A bank that follows its store: it picks up changes made by other processes within a second."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from heedful.memory.bank import MemoryBank
from heedful.ports import Store
from heedful.types import DEFAULT_RECALL, DEFAULT_THRESHOLD, Audience, Entry, Recall, Spec

if TYPE_CHECKING:
    from heedful.memory.index import Embedder, TextVectors

INDEX_ABOVE = 50_000
"""Entries above which a bank is recalled by an index."""
CHECK_SECONDS = 0.5
"""Minimum time between two checks of the store's revision."""
INDEX_SECONDS = 0.5
"""How long the question that finds a change waits for the new index."""


class LargeRecall(Protocol):
    """A bank that stays in its store; a state counts from the moment it is stored."""

    stale: bool
    """Whether the store has changes that this bank has not followed yet."""

    @property
    def digest(self) -> str: ...

    def entries(self) -> Sequence[Entry]: ...

    @property
    def waits(self) -> bool:
        """Whether `build` has work to do."""
        ...

    async def build(self) -> None:
        """Follow the store."""
        ...

    async def recall(self, query: str, *, limit: int, audience: Audience | None = None) -> list[Recall]: ...


@runtime_checkable
class VectorHome(Protocol):
    """A store that keeps vectors, and can recall from a large bank without loading it."""

    def vector_cache(self) -> "TextVectors": ...

    def open_large(
        self,
        name: str,
        *,
        threshold: float,
        embedder: "Callable[[], Embedder] | None",
        above: int,
        grows: bool = True,
        cache: "TextVectors | None" = None,
    ) -> LargeRecall | None: ...


@runtime_checkable
class ChangeAnnouncer(Protocol):
    """A store that announces changes, also those of other processes."""

    def changes(self, bank: str) -> int:
        """A number that becomes another one when the bank may have changed."""
        ...


class StoredBank:
    """Recalls from a snapshot and takes a new one when the store's revision increases.

    The new index is built in the background. The question that finds a change waits for it, but not for
    long; until it is ready, the old index is used without the entries that have since been changed, retired
    or quarantined. A bank of more than `index_above` entries
    stays in its store, if the store can recall from it by meaning (docs/design/028 and 029).
    """

    def __init__(
        self,
        store: Store,
        name: str,
        *,
        method: str = DEFAULT_RECALL,
        threshold: float = DEFAULT_THRESHOLD,
        embedder: "Callable[[], Embedder] | None" = None,
        cache: "TextVectors | None" = None,
        clock: Callable[[], float] = time.monotonic,
        index_above: int = INDEX_ABOVE,
        build_index: bool = True,
    ) -> None:
        """By default vectors are kept where the store keeps them. `build_index`: extend the index in the
        background; without it, recall uses the index that exists and searches the rest exactly."""
        self.name = name
        self._store = store
        if cache is None and isinstance(store, VectorHome):
            cache = store.vector_cache()
        self._clock = clock

        def snapshot_of(entries: Sequence[Entry]) -> MemoryBank:
            return MemoryBank(
                name, entries, method=method, threshold=threshold, embedder=embedder, cache=cache
            )

        def large() -> LargeRecall | None:
            if method != "dense" or not isinstance(store, VectorHome):
                return None
            return store.open_large(
                name,
                threshold=threshold,
                embedder=embedder,
                above=index_above,
                grows=build_index,
                cache=cache,
            )

        self._snapshot_of, self._open_large = snapshot_of, large
        self._newest = self._indexed = snapshot_of(())
        self._large: LargeRecall | None = None
        self._revision = -1
        self._checked = 0.0
        self._changes = 0
        self._building: asyncio.Task[None] | None = None

    @property
    def digest(self) -> str:
        return (self._large or self._newest).digest

    @property
    def spec(self) -> Spec:
        return {**self._newest.spec, "digest": self.digest}

    def entries(self) -> Sequence[Entry]:
        return (self._large or self._newest).entries()

    async def recall(self, query: str, *, limit: int, audience: Audience | None = None) -> Sequence[Recall]:
        await self._follow()
        if self._large is not None:
            return await self._large.recall(query, limit=limit, audience=audience)
        newest, indexed = self._newest, self._indexed
        if indexed is newest:
            return await indexed.recall(query, limit=limit, audience=audience)
        live, served = _versions(newest), _versions(indexed)
        recalls = await indexed.recall(query, limit=limit + len(served - live), audience=audience)
        return [recall for recall in recalls if (recall.entry.id, recall.entry.digest) in live][:limit]

    async def _follow(self) -> None:
        """Take the store's newest state if it has a newer revision, and start building its index."""
        changes, found = self._announced(), False
        overdue = self._clock() - self._checked >= CHECK_SECONDS
        if self._revision < 0 or overdue or changes != self._changes:
            asked_at, revision = self._clock(), await self._store.revision(self.name)
            if revision != self._revision:
                found = self._revision >= 0
                await self._take()
                self._revision = revision
            self._checked, self._changes = asked_at, changes
        waits = self._large.waits if self._large else self._indexed is not self._newest
        if waits and (self._building is None or self._building.done()):
            self._building = asyncio.create_task(self._build())
        if found and self._building is not None:
            await asyncio.wait({self._building}, timeout=INDEX_SECONDS)

    def _announced(self) -> int:
        """The store's announcements so far; the first recall reads the store anyway."""
        if self._revision < 0 or not isinstance(self._store, ChangeAnnouncer):
            return self._changes
        return self._store.changes(self.name)

    async def _take(self) -> None:
        """A large bank reads what it lacks in the background; another one takes a new snapshot."""
        if self._large is not None:
            self._large.stale = True
            return
        self._large = await asyncio.to_thread(self._open_large)
        self._newest = self._snapshot_of(() if self._large else await self._store.entries(self.name))
        if self._revision < 0:
            self._indexed = self._newest

    async def _build(self) -> None:
        bank = self._newest
        try:
            await (self._large or bank).build()
        except Exception:  # the old index stays in use, and the next recall tries again
            logging.getLogger("heedful").exception("the index of bank %s could not be rebuilt", self.name)
        else:
            self._indexed = bank


def _versions(bank: MemoryBank) -> set[tuple[str, str]]:
    return {(entry.id, entry.digest) for entry in bank.entries() if entry.live}
