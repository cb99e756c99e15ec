"""How alike two answers are in meaning, for value policies on free text."""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from heedful.errors import MissingError
from heedful.memory.bank import minilm

if TYPE_CHECKING:
    from heedful.memory.index import Embedder, Floats

MOST_TEXTS = 65_536
DECIMALS = 4
Similarity = Callable[[str, str], float]


def answer_similarity(one: str, other: str) -> float:
    """The cosine similarity of two texts by MiniLM.

    Each text is embedded by itself, so that a replay computes the same number as the live controller.
    """
    return round(float(_vector(one) @ _vector(other)), DECIMALS)


@lru_cache(maxsize=1)
def similarity_if_present() -> Similarity | None:
    """The similarity of answers, if the weights for it are on this machine; nothing is downloaded."""
    try:
        _embedder()
    except MissingError:
        return None
    return answer_similarity


@lru_cache(maxsize=MOST_TEXTS)
def _vector(text: str) -> "Floats":
    vector: Floats = _embedder().embed([text])[0]
    return vector


@lru_cache(maxsize=1)
def _embedder() -> "Embedder":
    return minilm()
