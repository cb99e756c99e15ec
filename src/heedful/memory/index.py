"""The deterministic ranking shared by every index: score, then id."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


class Index(Protocol):
    """Finds entries; a result is a position in the list that the index was built from."""

    def search(self, query: str, limit: int) -> list[tuple[int, float]]:
        """The best positions with their scores, best first."""
        ...


class Embedder(Protocol):
    """Turns texts into unit vectors."""

    def embed(self, texts: Sequence[str]) -> Floats: ...


class TextVectors(Protocol):
    """Embeds each text once, and keeps its vector."""

    def vectors(self, texts: Sequence[str], embedder: Embedder) -> Floats: ...

    def missing(self, texts: Sequence[str]) -> int:
        """How many of the texts have no vector yet."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexInput:
    """The data that an index is built from."""

    texts: Sequence[str]
    ids: Sequence[str]
    threshold: float
    """The minimum similarity, for methods that use one."""
    embedder: Callable[[], Embedder]
    """Creates the embedder at first use."""
    vectors: Callable[[Embedder], Floats]
    """The texts' vectors, from the cache if there is one."""


def best(scores: Floats, ids: Sequence[str], limit: int, at_least: float) -> list[tuple[int, float]]:
    """The `limit` highest scores that reach `at_least`, ties by id."""
    eligible = np.flatnonzero(scores >= at_least)
    if len(eligible) > limit:
        kth = np.partition(scores[eligible], -limit)[-limit] if limit else np.inf
        eligible = eligible[scores[eligible] >= kth]
    order = sorted(eligible.tolist(), key=lambda place: (-float(scores[place]), ids[place]))
    return [(place, float(scores[place])) for place in order[:limit]]
