"""A named set of entries with a recall method."""

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache as cache_result
from functools import cached_property
from typing import TYPE_CHECKING

from heedful.errors import UsageError
from heedful.limits import is_number
from heedful.memory.entries import refuse_bank_name
from heedful.plugins import Registry
from heedful.types import DEFAULT_RECALL, DEFAULT_THRESHOLD, Audience, Entry, Recall, Spec, digest_of

if TYPE_CHECKING:
    from heedful.memory.index import Embedder, Floats, Index, IndexInput, TextVectors

RECALL_METHODS: "Registry[Callable[[IndexInput], Index]]" = Registry(
    "heedful.recall",
    {
        "dense": "heedful.memory.dense:dense_index",
        "bm25": "heedful.memory.lexical:lexical_index",
        "bm25_rerank": "heedful.memory.rerank:rerank_index",
    },
)
"""Recall methods by name; each builds an index."""
VIEWS = 32
"""Number of audiences whose index a bank keeps."""


WITHOUT_THRESHOLD = ("bm25", "bm25_rerank")
"""Recall methods of ours that do not use a threshold."""


class MemoryBank:
    """A snapshot of entries; quarantined and retired ones are not recalled."""

    def __init__(
        self,
        name: str,
        entries: Sequence[Entry],
        *,
        method: str = DEFAULT_RECALL,
        threshold: float = DEFAULT_THRESHOLD,
        embedder: "Callable[[], Embedder] | None" = None,
        cache: "TextVectors | None" = None,
    ) -> None:
        """`threshold` applies to `dense` only; `embedder` is called at first use (default: MiniLM);
        `cache` stores the entries' vectors between runs."""
        if method not in RECALL_METHODS:
            known = ", ".join(RECALL_METHODS)
            raise UsageError(f"unknown recall method {method!r}; choose one of {known}")
        refuse_bank_name(name)
        if not is_number(threshold):
            raise UsageError(f"the threshold of recall is {threshold!r}; set it to a number such as 0.6")
        self.name = name
        self.method = method
        self.threshold = threshold
        self._entries = tuple(entries)
        self._live = [entry for entry in entries if entry.live]
        self._limited = any(entry.limited for entry in self._live)
        self._embedder = cache_result(embedder or minilm)
        self._cache = cache
        self._index: Index | None = None
        self._building = threading.Lock()
        self._shared: dict[str, Floats] | None = None
        self._views: OrderedDict[tuple[int, ...], MemoryBank] = OrderedDict()

    @cached_property
    def digest(self) -> str:
        return digest_of(sorted([entry.id, entry.digest, entry.state] for entry in self._entries))

    @property
    def spec(self) -> Spec:
        spec = {"bank": self.name, "digest": self.digest, "recall": self.method}
        return {**spec, "threshold": self.threshold} if self.method == "dense" else spec

    def entries(self) -> Sequence[Entry]:
        return self._entries

    async def recall(self, query: str, *, limit: int, audience: Audience | None = None) -> Sequence[Recall]:
        """The best entries that the audience sees; others do not influence the ranking."""
        if self._limited:
            view = self._view(audience or Audience(at=time.time()))
            return await view.recall(query, limit=limit)
        if not self._live:
            return ()
        if self.method == "bm25" and self._index is not None:  # too fast to be worth a thread
            hits = self._index.search(query, limit)
        else:
            hits = await asyncio.to_thread(self._search, query, limit)
        return tuple(Recall(entry=self._live[place], score=score) for place, score in hits)

    def _view(self, audience: Audience) -> "MemoryBank":
        """A bank of the live entries that the audience sees, with an index of its own."""
        if self._shared is None:
            self._shared = {}
        places = tuple(at for at, entry in enumerate(self._live) if audience.sees(entry))
        with self._building:
            view = self._views.get(places)
            if view is None:
                view = self._view_of([self._live[at] for at in places])
                self._views[places] = view
                while len(self._views) > VIEWS:
                    self._views.popitem(last=False)
            self._views.move_to_end(places)
        return view

    def _view_of(self, entries: Sequence[Entry]) -> "MemoryBank":
        view = MemoryBank(
            self.name,
            entries,
            method=self.method,
            threshold=self.threshold,
            embedder=self._embedder,
            cache=self._cache,
        )
        view._limited, view._shared = False, self._shared
        return view

    async def build(self) -> None:
        """Build the index now, outside the event loop, instead of at the first recall."""
        if self._live and not self._limited:
            await asyncio.to_thread(self._built)

    def _search(self, query: str, limit: int) -> list[tuple[int, float]]:
        return self._built().search(query, limit)

    def _built(self) -> "Index":
        with self._building:
            if self._index is None:
                self._index = self._make_index()
        return self._index

    def _make_index(self) -> "Index":
        from heedful.memory.index import IndexInput

        texts = [entry.text for entry in self._live]
        return RECALL_METHODS[self.method](
            IndexInput(
                texts=texts,
                ids=[entry.id for entry in self._live],
                threshold=self.threshold,
                embedder=self._embedder,
                vectors=lambda by: self._vectors(texts, by),
            )
        )

    def _vectors(self, texts: Sequence[str], embedder: "Embedder") -> "Floats":
        """The texts' vectors; the views of a bank share them."""
        if self._shared is None:
            return embedder.embed(texts) if self._cache is None else self._cache.vectors(texts, embedder)
        import numpy as np

        if missing := [text for text in dict.fromkeys(texts) if text not in self._shared]:
            fresh = embedder.embed(missing) if self._cache is None else self._cache.vectors(missing, embedder)
            self._shared.update(zip(missing, fresh, strict=True))
        return np.stack([self._shared[text] for text in texts])


def minilm() -> "Embedder":
    """The default embedder."""
    from heedful.memory.embed import MiniLM
    from heedful.models import weights

    return MiniLM(weights.path("all-minilm-l6-v2"))
