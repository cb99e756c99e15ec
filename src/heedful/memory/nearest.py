"""Rank the visible entries of a large bank: candidates from the index, scores exactly."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from heedful.memory.columns import BankColumns
from heedful.memory.hnsw import HnswIndex
from heedful.memory.index import Floats
from heedful.memory.vector_file import Places
from heedful.types import Audience

WIDTHS = (64, 1024)
"""Candidates from the index; if too few of them are visible, the next width, and then exact search."""
CHUNK = 1 << 16
"""Rows that are copied together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """One consistent state of a large bank."""

    columns: BankColumns
    rows: Floats
    index: HnswIndex | None
    order: Places = field(init=False)
    """Positions by row: entries with the same text share a row."""
    ordered: Places = field(init=False)

    def __post_init__(self) -> None:
        order = np.argsort(self.columns.places, kind="stable")
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "ordered", self.columns.places[order])

    def positions(self, places: Places) -> Places:
        """Every position of these rows."""
        starts = np.searchsorted(self.ordered, places, "left")
        ends = np.searchsorted(self.ordered, places, "right")
        parts = [self.order[start:end] for start, end in zip(starts, ends, strict=True)]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def rank(
    search: Search, vector: Floats, limit: int, threshold: float, audience: Audience
) -> tuple[Places, Floats]:
    """At least the best `limit` visible positions that reach the threshold, with all ties of the last."""
    for positions, complete in _candidates(search, vector, limit, threshold, audience):
        if complete:
            return _best(positions, _scores(search, positions, vector), limit, threshold)
    everyone = np.flatnonzero(search.columns.visible(audience))
    return _best(everyone, _scores(search, everyone, vector), limit, threshold)


def _candidates(
    search: Search, vector: Floats, limit: int, threshold: float, audience: Audience
) -> Iterator[tuple[Places, bool]]:
    """Visible positions near the query, and whether no other can be among the best."""
    if search.index is None:
        return
    tail = np.arange(search.index.covered, len(search.columns.places))
    tail = tail[search.columns.visible(audience, tail)]
    for width in WIDTHS:
        if width < limit:
            continue
        places = search.index.nearest(vector, width)
        near = search.positions(places)
        near = near[(near < search.index.covered) & search.columns.visible(audience, near)]
        reached = len(places) == width and search.rows[places[-1]] @ vector >= threshold
        yield np.concatenate([near, tail]), len(near) >= limit or not reached


def _scores(search: Search, positions: Places, vector: Floats) -> Floats:
    """Exact similarities; each row is multiplied once, so equal texts have equal scores."""
    places, at = np.unique(search.columns.places[positions], return_inverse=True)
    if len(places) * 2 > len(search.rows):
        return np.asarray(search.rows @ vector)[search.columns.places[positions]]
    parts = [search.rows[places[start : start + CHUNK]] @ vector for start in range(0, len(places), CHUNK)]
    return np.concatenate(parts)[at] if parts else np.zeros(0, np.float32)


def _best(positions: Places, scores: Floats, limit: int, threshold: float) -> tuple[Places, Floats]:
    eligible = np.flatnonzero(scores >= threshold)
    if len(eligible) > limit:
        kth = np.partition(scores[eligible], -limit)[-limit]
        eligible = eligible[scores[eligible] >= kth]
    return positions[eligible], scores[eligible]
