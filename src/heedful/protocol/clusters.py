"""Clusters of questions: repeated texts and near-duplicates count as one observation."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from heedful.benchmarks.items import normal_question
from heedful.memory.index import Embedder
from heedful.types import Side, digest_of

NEAR = 0.95
"""The cosine similarity from which two questions are near-duplicates."""
PATTERN = 0.1
"""If more than this share of questions differ in their numbers only, near-duplicates need equal numbers."""
NUMBER = r"\d+(?:[.,]\d+)*"
BLOCK = 1024
"""Questions compared with all others at once."""
Pair = tuple[int, int]
MakeEmbedder = Callable[[], Embedder]
"""Loads an embedder when the first texts are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A row of a study with the text that the model reads."""

    side: Side
    id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionCluster:
    """Rows that ask the same question, by side."""

    fit: tuple[str, ...] = ()
    test: tuple[str, ...] = ()

    def on(self, side: Side) -> tuple[str, ...]:
        return self.fit if side == "fit" else self.test


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """The clusters with more than one row; every other row is a cluster of its own."""

    questions: str = ""
    """Digest of the questions."""
    near: float | None = None
    """The similarity of near-duplicates; None if only equal texts were searched for."""
    same_numbers: bool = False
    """Whether near-duplicates also contain the same numbers."""
    clusters: tuple[QuestionCluster, ...] = ()

    @property
    def digest(self) -> str:
        return digest_of(asdict(self))

    @property
    def straddling(self) -> tuple[QuestionCluster, ...]:
        """The clusters with rows on both sides."""
        return tuple(cluster for cluster in self.clusters if cluster.fit and cluster.test)

    def of_tasks(self, side: Side) -> dict[str, str]:
        """The cluster of each repeated task of a side, named by its first task."""
        return {task: cluster.on(side)[0] for cluster in self.clusters for task in cluster.on(side)}


NO_CLUSTERS = Clusters()
"""For studies whose questions were not compared: every task is a cluster of its own."""


def find_clusters(asked: Sequence[AskedQuestion], embedder: MakeEmbedder | None) -> Clusters:
    """Join rows with equal texts, and near-duplicates if there is an embedder."""
    normal = [normal_question(row.text) for row in asked]
    first = {text: place for place, text in reversed(list(enumerate(normal)))}
    pairs = [(first[text], place) for place, text in enumerate(normal)]
    different = {place: asked[place].text for place in sorted(first.values())}
    same_numbers = follow_a_pattern(list(different.values()))
    if embedder is not None:
        groups = _by_numbers(different) if same_numbers else [different]
        pairs += near_pairs([group for group in groups if len(group) > 1], embedder)
    members: dict[int, list[AskedQuestion]] = {}
    for place, root in enumerate(_roots(len(asked), pairs)):
        members.setdefault(root, []).append(asked[place])
    return Clusters(
        questions=questions_digest(asked),
        near=None if embedder is None else NEAR,
        same_numbers=same_numbers,
        clusters=tuple(_cluster(rows) for rows in members.values() if len(rows) > 1),
    )


def questions_digest(asked: Iterable[AskedQuestion]) -> str:
    """A digest of the rows and their texts."""
    return digest_of([[row.side, row.id, row.text] for row in asked])


def follow_a_pattern(texts: Sequence[str]) -> bool:
    """Whether many of the texts differ in their numbers only, such as "What is on shelf 3?".

    An embedding cannot tell such questions apart, and all of them would become one cluster.
    """
    counts = Counter(normal_question(re.sub(NUMBER, " ", text)) for text in texts)
    most = max(counts.values(), default=0)
    return most > 1 and most > PATTERN * len(texts)


def near_pairs(groups: Sequence[Mapping[int, str]], embedder: MakeEmbedder) -> Iterator[Pair]:
    """Pairs of places in one group whose texts are similar."""
    if not groups:
        return
    vectors = embedder().embed([text for group in groups for text in group.values()])
    start = 0
    for group in groups:
        places, unit = list(group), vectors[start : start + len(group)]
        start += len(group)
        for row in range(0, len(places), BLOCK):
            for one, other in np.argwhere(unit[row : row + BLOCK] @ unit.T >= NEAR).tolist():
                yield places[row + one], places[other]


def _by_numbers(texts: Mapping[int, str]) -> list[dict[int, str]]:
    """The texts in groups with the same numbers."""
    groups: dict[tuple[str, ...], dict[int, str]] = {}
    for place, text in texts.items():
        groups.setdefault(numbers_in(text), {})[place] = text
    return list(groups.values())


def numbers_in(text: str) -> tuple[str, ...]:
    """The numbers in a text, sorted."""
    return tuple(sorted(re.findall(NUMBER, text)))


def _roots(count: int, pairs: Iterable[Pair]) -> list[int]:
    """For each place the first place it is joined with, directly or through others."""
    parent = list(range(count))

    def root(place: int) -> int:
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    for one, other in pairs:
        low, high = sorted((root(one), root(other)))
        parent[high] = low
    return [root(place) for place in range(count)]


def _cluster(rows: Sequence[AskedQuestion]) -> QuestionCluster:
    return QuestionCluster(
        fit=tuple(sorted(row.id for row in rows if row.side == "fit")),
        test=tuple(sorted(row.id for row in rows if row.side == "test")),
    )
