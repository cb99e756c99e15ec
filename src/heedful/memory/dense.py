"""Exact cosine search over MiniLM vectors."""

from collections.abc import Sequence

import numpy as np

from heedful.memory.index import Embedder, Floats, IndexInput, best
from heedful.types import DEFAULT_THRESHOLD


class DenseIndex:
    """Cosine similarity with a threshold, ties by id."""

    def __init__(
        self, vectors: Floats, ids: Sequence[str], embedder: Embedder, threshold: float = DEFAULT_THRESHOLD
    ) -> None:
        self._vectors = vectors
        self._ids = list(ids)
        self._embedder = embedder
        self._threshold = threshold

    def search(self, query: str, limit: int) -> list[tuple[int, float]]:
        return self.nearest(self._embedder.embed([query])[0], limit)

    def nearest(self, vector: Floats, limit: int) -> list[tuple[int, float]]:
        """The entries nearest to a query's vector."""
        return best(self._vectors @ vector, self._ids, limit, self._threshold)

    def similarities(self, query: str, places: Sequence[int]) -> Floats:
        """The cosine similarity of the query to the entries at these positions."""
        return np.asarray(self._vectors[list(places)] @ self._embedder.embed([query])[0])


def dense_index(given: IndexInput) -> DenseIndex:
    embedder = given.embedder()
    return DenseIndex(given.vectors(embedder), given.ids, embedder, given.threshold)
