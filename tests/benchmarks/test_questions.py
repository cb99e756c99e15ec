"""A person's own questions."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from heedful import UsageError
from heedful.benchmarks.answer_patterns import FINAL_NUMBER
from heedful.benchmarks.items import items_digest, read_items
from heedful.benchmarks.questions import OwnQuestions
from heedful.types import Choice, Item

BIRDS = Item(
    id="b",
    question="Which bird swims?",
    answer="A",
    choices=(Choice(label="A", text="penguin"), Choice(label="B", text="lark")),
)


def test_choices_are_shown_to_the_model_and_are_what_it_may_answer(tmp_path: Path) -> None:
    own = OwnQuestions(name="own", fit=tmp_path, metric="choice")
    assert own.task(BIRDS).question == "Which bird swims?\nA. penguin\nB. lark"
    assert own.task(BIRDS).choices == ("A", "B")
    assert own.exemplar(BIRDS).text == own.task(BIRDS).question


def test_another_choice_is_another_question() -> None:
    other = Item(
        id="b", question=BIRDS.question, answer="A", choices=(Choice(label="A", text="auk"), BIRDS.choices[1])
    )
    assert items_digest([BIRDS]) != items_digest([other])


def test_another_right_answer_is_another_target() -> None:
    assert items_digest([BIRDS]) != items_digest([replace(BIRDS, also=("B",))])
    assert OwnQuestions(name="own", fit=Path()).grade("b", replace(BIRDS, also=("B",)))


@pytest.mark.parametrize(
    ("metric", "row", "says"),
    [
        ("number", {"answer": "many"}, "'many' to 1 is not one number"),
        ("number", {"answer": "3 or 4"}, "'3 or 4' to 1 is not one number"),
        (
            "choice",
            {"answer": "C", "choices": [{"label": "A", "text": "x"}]},
            r"not the label of a choice \(A\)",
        ),
    ],
)
def test_a_target_that_the_metric_cannot_read_is_refused(
    metric: str, row: dict[str, object], says: str, tmp_path: Path
) -> None:
    (tmp_path / "q.jsonl").write_text(json.dumps({"id": 1, "question": "How many?", **row}))
    own = OwnQuestions(name="own", fit=Path("q.jsonl"), test=Path("q.jsonl"), metric=metric)
    with pytest.raises(UsageError, match=says):
        own.load(tmp_path, "fit")


def test_a_study_may_say_how_the_answer_is_found() -> None:
    own = OwnQuestions(name="own", fit=Path(), metric="number", answer="whole")
    assert own.task(BIRDS).answer_pattern is None
    assert replace(own, answer=None).task(BIRDS).answer_pattern == FINAL_NUMBER
    assert replace(own, answer=None, answer_pattern="(x)").task(BIRDS).answer_pattern == "(x)"
    assert replace(own, answer=None, metric="contains").task(BIRDS).answer_pattern is None


def test_an_id_that_stands_twice_is_refused(tmp_path: Path) -> None:
    rows = [{"id": id, "question": f"{id}?", "answer": "x"} for id in ("a", "b", "a")]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(UsageError, match="the id 'a' more than once"):
        read_items(tmp_path / "q.jsonl")


def test_a_metric_that_fails_names_itself_and_the_question(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def near(answer, target):\n    return 1 / 0\n")
    own = OwnQuestions(name="own", fit=tmp_path, metric="python:mine:near", folder=tmp_path)
    with pytest.raises(UsageError, match="python:mine:near fails on the answer to b: division by zero"):
        own.grade("x", BIRDS)


def halves(folder: Path, texts: list[str], seed: int) -> tuple[list[str], list[str]]:
    rows = [{"id": f"q{place}", "question": text, "answer": "x"} for place, text in enumerate(texts)]
    (folder / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    own = OwnQuestions(name="own", fit=Path("q.jsonl"), seed=seed)
    fit, test = ([item.question for item in own.load(folder, side)] for side in ("fit", "test"))
    return fit, test


@pytest.mark.parametrize("seed", range(5))
def test_a_repeated_question_is_on_one_side_of_a_file(tmp_path: Path, seed: int) -> None:
    texts = [text for n in range(10) for text in (f"Who has {n}?", f"who has {n}", f"Who sold {n}?")]
    fit, test = halves(tmp_path, texts, seed)
    assert sorted(fit + test) == sorted(texts)
    assert len(fit) == 15
    asked = ({text.casefold().rstrip("?") for text in side} for side in (fit, test))
    assert set.intersection(*asked) == set()


def test_a_file_without_repeats_is_split_in_half_by_seed(tmp_path: Path) -> None:
    texts = [f"Who has {n}?" for n in range(9)]
    order = random.Random(3).sample(range(9), 9)
    assert halves(tmp_path, texts, 3)[0] == [texts[place] for place in sorted(order[:4])]
