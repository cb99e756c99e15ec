"""BM25 search, reranked by MiniLM similarity."""

from collections.abc import Sequence

from heedful.memory.dense import DenseIndex, dense_index
from heedful.memory.index import IndexInput, best
from heedful.memory.lexical import LexicalIndex, lexical_index

POOL = 20
"""Number of BM25 hits to rerank."""


class RerankIndex:
    """The best `POOL` entries by BM25, reranked by cosine similarity, ties by id."""

    def __init__(self, lexical: LexicalIndex, dense: DenseIndex, ids: Sequence[str]) -> None:
        self._lexical = lexical
        self._dense = dense
        self._ids = list(ids)

    def search(self, query: str, limit: int) -> list[tuple[int, float]]:
        places = [place for place, _ in self._lexical.search(query, max(POOL, limit))]
        if not places:
            return []
        scores = self._dense.similarities(query, places)
        ranked = best(scores, [self._ids[place] for place in places], limit, -1.0)
        return [(places[at], score) for at, score in ranked]


def rerank_index(given: IndexInput) -> RerankIndex:
    return RerankIndex(lexical_index(given), dense_index(given), given.ids)
