"""BM25 over the entries' words."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from heedful.memory.index import IndexInput, best

LEAST_SCORE = 1e-9
"""An entry that shares no word with the query scores 0 and is not recalled."""


class LexicalIndex:
    """BM25 (Lucene's variant), ties by id."""

    def __init__(self, texts: Sequence[str], ids: Sequence[str]) -> None:
        self._ids = list(ids)
        self._words: frozenset[str] = frozenset()
        self._engine: Any = None
        if texts:
            self._build(texts)

    def search(self, query: str, limit: int) -> list[tuple[int, float]]:
        words = sorted({word for word in _tokens([query])[0] if word in self._words})
        if not words:
            return []
        scores = np.asarray(self._engine.get_scores(words), dtype=np.float32)
        return best(scores, self._ids, limit, LEAST_SCORE)

    def _build(self, texts: Sequence[str]) -> None:
        import bm25s

        tokens = _tokens(texts)
        self._words = frozenset(word for text in tokens for word in text)
        if self._words:
            self._engine = bm25s.BM25(method="lucene")
            self._engine.index(tokens, show_progress=False)


def _tokens(texts: Sequence[str]) -> list[list[str]]:
    import bm25s

    tokens: list[list[str]] = bm25s.tokenize(
        list(texts), stopwords="en", return_ids=False, show_progress=False
    )
    return tokens


def lexical_index(given: IndexInput) -> LexicalIndex:
    return LexicalIndex(given.texts, given.ids)
