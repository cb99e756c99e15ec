"""One deterministic order for every index: score, then id."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


class Index(Protocol):
    """Finds entries by their place in the list it was built from."""

    def search(self, query: str, limit: int) -> list[tuple[int, float]]:
        """The best places with their scores, best first."""
        ...


def best(scores: Floats, ids: Sequence[str], limit: int, at_least: float) -> list[tuple[int, float]]:
    """The `limit` highest scores that reach `at_least`, ties by id."""
    eligible = np.flatnonzero(scores >= at_least)
    if len(eligible) > limit:
        kth = np.partition(scores[eligible], -limit)[-limit] if limit else np.inf
        eligible = eligible[scores[eligible] >= kth]
    order = sorted(eligible.tolist(), key=lambda place: (-float(scores[place]), ids[place]))
    return [(place, float(scores[place])) for place in order[:limit]]
