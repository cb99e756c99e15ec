"""Repeated questions and near-duplicates are one observation."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from heedful.memory.embed import MiniLM
from heedful.memory.index import Floats
from heedful.protocol.clusters import (
    NO_CLUSTERS,
    AskedQuestion,
    QuestionCluster,
    find_clusters,
    numbers_in,
)
from heedful.types import Side

STORY = "Paige had 11 songs on her player. She deleted 9 and added 8. How many songs does she have?"
RETOLD = "Paige had 12 songs on her player. She deleted 7 and added 5. How many songs does she have now?"


class Wheel:
    """Puts a text on a circle, at as many degrees as it has characters."""

    def embed(self, texts: Sequence[str]) -> Floats:
        angles = np.radians([len(text) for text in texts])
        return np.stack((np.cos(angles), np.sin(angles)), axis=1).astype(np.float32)


class FirstLetters:
    """Texts are equal if they start with the same letter, otherwise unrelated."""

    def embed(self, texts: Sequence[str]) -> Floats:
        return np.eye(26, dtype=np.float32)[[ord(text[0]) - ord("a") for text in texts]]


def asked(*texts: str, side: Side = "fit") -> list[AskedQuestion]:
    return [AskedQuestion(side=side, id=f"{side}{place}", text=text) for place, text in enumerate(texts)]


def test_equal_texts_are_one_cluster_whatever_their_case_and_punctuation() -> None:
    found = find_clusters(asked("Who swims?", "Who flies?", "who swims", "Who  SWIMS!"), None)
    assert found.clusters == (QuestionCluster(fit=("fit0", "fit2", "fit3")),)
    assert found.near is None
    assert found.of_tasks("fit") == {"fit0": "fit0", "fit2": "fit0", "fit3": "fit0"}


def test_a_cluster_knows_its_rows_on_both_sides() -> None:
    rows = [*asked("Who swims?", "Who sings?"), *asked("Who flies?", "Who swims?", side="test")]
    found = find_clusters(rows, None)
    assert found.straddling == (QuestionCluster(fit=("fit0",), test=("test1",)),)
    assert found.of_tasks("test") == {"test1": "test1"}


def test_the_same_id_on_both_sides_is_two_rows() -> None:
    rows = [
        AskedQuestion(side="fit", id="q1", text="Who swims?"),
        AskedQuestion(side="test", id="q1", text="Who sings?"),
    ]
    assert find_clusters(rows, None).clusters == ()


def test_near_texts_are_joined_through_others() -> None:
    texts = ["a" * 10, "b" * 25, "c" * 40, "d" * 80]  # 18 degrees are a similarity of 0.951
    found = find_clusters(asked(*texts), Wheel)
    assert found.clusters == (QuestionCluster(fit=("fit0", "fit1", "fit2")),)


def test_texts_that_differ_in_a_number_are_near() -> None:
    others = [f"{letter}?" for letter in "abcdeghijklmnopqrstu"]
    found = find_clusters(asked("fill shelf 3?", "fill shelf 4?", *others), FirstLetters)
    assert not found.same_numbers
    assert found.clusters == (QuestionCluster(fit=("fit0", "fit1")),)


def test_in_a_study_of_one_pattern_texts_that_differ_in_a_number_are_two_questions() -> None:
    loaded: list[Wheel] = []

    def wheel() -> Wheel:
        loaded.append(Wheel())
        return loaded[0]

    found = find_clusters(asked("What is on shelf 3?", "What is on shelf 4?"), wheel)
    assert found.same_numbers
    assert found.clusters == ()
    assert loaded == [], "nothing can be near, so nothing is embedded"


@pytest.mark.parametrize(
    ("text", "numbers"), [("2 of 10, 2 left", ("10", "2", "2")), ("$1,200.50.", ("1,200.50",)), ("none", ())]
)
def test_numbers_are_found_in_a_text(text: str, numbers: tuple[str, ...]) -> None:
    assert numbers_in(text) == numbers


def test_in_a_study_of_one_pattern_near_texts_with_the_same_numbers_are_joined() -> None:
    found = find_clusters(asked("What is on shelf 3?", "What is on shelf 4?", "What lies on shelf 3?"), Wheel)
    assert found.clusters == (QuestionCluster(fit=("fit0", "fit2")),)


def test_the_digest_depends_on_the_questions_and_on_the_clusters() -> None:
    one, other = find_clusters(asked("Who?", "What?"), None), find_clusters(asked("Who?", "who"), None)
    assert len({one.digest, other.digest, NO_CLUSTERS.digest}) == 3
    assert one.digest == find_clusters(asked("Who?", "What?"), None).digest


def test_minilm_finds_a_retold_problem_and_leaves_another_alone(minilm: Path) -> None:
    other = "A pet store had 11 cats and 9 dogs. It sold 8 cats. How many animals are left?"
    found = find_clusters(asked(STORY, other, RETOLD), partial(MiniLM, minilm))
    assert found.clusters == (QuestionCluster(fit=("fit0", "fit2")),)
