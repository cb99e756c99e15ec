"""The search of the shop: BM25 over stemmed words (k1 0.9, b 0.4)."""

import re
from collections.abc import Sequence
from typing import Any

from heedful.environments.webshop.catalogue import Product
from heedful.environments.webshop.stemming import stem

K1, B = 0.9, 0.4
LIMIT = 50
STOP_WORDS = frozenset(
    (
        *(
            "a",
            "an",
            "and",
            "are",
            "as",
            "at",
            "be",
            "but",
            "by",
            "for",
            "if",
            "in",
            "into",
            "is",
            "it",
            "no",
        ),
        *("not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this"),
        *("to", "was", "will", "with"),
    )
)
"""Lucene's English stop words."""


class ShopSearch:
    """Finds products by the words of title, description, features and options; ties go by asin."""

    def __init__(self, products: Sequence[Product]) -> None:
        import bm25s

        self._products = sorted(products, key=lambda product: product.asin)
        texts = [_words(f"{product.text} {_option_text(product)}") for product in self._products]
        self._known = {word for text in texts for word in text}
        self._engine: Any = bm25s.BM25(k1=K1, b=B, method="lucene")
        if self._known:
            self._engine.index(texts, show_progress=False)

    def find(self, query: str) -> list[Product]:
        """The best products, at most 50."""
        words = [word for word in _words(query) if word in self._known]
        if not words:
            return []
        scores = self._engine.get_scores(words)
        order = sorted(range(len(self._products)), key=lambda place: -scores[place])
        return [self._products[place] for place in order[:LIMIT] if scores[place] > 0]


def _option_text(product: Product) -> str:
    return " ".join(value for values in product.choices.values() for value in values)


def _words(text: str) -> list[str]:
    return [stem(word) for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in STOP_WORDS]
