from pathlib import Path

import pytest

from heedful import Task, UsageError
from heedful.benchmarks.answer_patterns import Reading, answer_pattern
from heedful.benchmarks.metrics import (
    metric_named,
    metric_source,
    read_number,
    same_choice,
    same_number,
    same_text,
)
from heedful.stages.answer import read_answer
from heedful.types import Decode


@pytest.mark.parametrize(
    ("answer", "target", "right"),
    [
        ("51", "51", True),
        ("$51.00", "51", True),
        ("1,250 dollars", "1250", True),
        ("3/4 of the cake", "0.75", True),
        ("1 1/2 cups", "1.5", True),
        ("-3", "-3", True),
        ("−3 degrees", "-3", True),
        ("seven apples", "7", True),
        ("145 bananas in each group.", "145", True),
        ("**12**", "12", True),
        ("0.333", "0.33", True),
        (".5", "0.5", True),
        ("13", "12", False),
        ("no idea", "12", False),
        ("", "12", False),
        ("1/0", "0", False),
        ("5.1", "5", False),
    ],
)
def test_numbers_are_compared_in_their_usual_spellings(answer: str, target: str, right: bool) -> None:
    assert same_number(answer, target) is right


@pytest.mark.parametrize(
    ("reply", "final"),
    [
        ("She has 5 and buys 7, so 5 + 7 = 12", 12),
        ("Answer: 12 (because 5 + 7)", 12),
        ("Answer: 5 + 7 = 12 apples\nThat took 3 steps.", 12),
        ("5 + 7. The answer is **12**.", 12),
        ("5 + 7\n#### 12", 12),
        (r"So \(\boxed{12}\) apples for 3 people", 12),
        ("Answer: 3. Wait, no. Answer: 12", 12),
        ("Answer:\n$1,250.50", 1250.5),
        ("Answer: seven for each one", 7),
        ("There are seven", 7),
        ("20 - 13", 13),
        ("300 - 359 = -59", -59),
        ("no idea", None),
    ],
)
def test_the_final_number_of_a_reply_counts(reply: str, final: float | None) -> None:
    assert read_number(reply) == final
    task = Task(question="?", answer_pattern=answer_pattern("number"))
    assert read_number(read_answer(Decode(text=reply), task).answer) == final


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("B", "B"),
        ("(b)", "b"),
        ("B. a bird", "B"),
        ("B penguin", "B"),
        ("**C**", "C"),
        ("A penguin swims. Answer: B", "B"),
        ("The correct option is B, not (C).", "B"),
        ("First (C), then (B)", "B"),
        ("A penguin swims", ""),
        ("Bird", ""),
        ("<think>(C)?</think>\nB", "B"),
    ],
)
def test_the_chosen_letter_is_told_from_an_article(reply: str, letter: str) -> None:
    task = Task(question="?", answer_pattern=answer_pattern("choice", ("A", "B", "C")))
    assert read_answer(Decode(text=reply), task).answer == letter


@pytest.mark.parametrize(
    ("reading", "reply", "answer"),
    [
        ("whole", " It is\nGhent. ", "It is\nGhent."),
        ("marked", "I think so.\n**Answer:** Ghent\nBye", "Ghent"),
        ("marked", "In Ghent.", "In Ghent."),
        ("last-line", "I think so.\nGhent\n\n", "Ghent"),
    ],
)
def test_a_reading_finds_the_answer_where_it_says(reading: Reading, reply: str, answer: str) -> None:
    task = Task(question="?", answer_pattern=answer_pattern(reading))
    assert read_answer(Decode(text=reply), task).answer == answer


@pytest.mark.parametrize(
    ("answer", "target", "right"),
    [("B", "B", True), ("(b)", "B", True), ("B. a bird", "B", True), ("Bird", "B", False), ("", "A", False)],
)
def test_choices_are_letters_whatever_stands_around_them(answer: str, target: str, right: bool) -> None:
    assert same_choice(answer, target) is right


def test_text_is_compared_without_case_articles_and_punctuation() -> None:
    assert same_text("The  Blue-Whale!", "blue whale")
    assert not same_text("whale", "blue whale")
    assert same_text("a", "A")
    assert not same_text("the", "A")
    assert not same_text("-", "+")


def test_the_other_metrics_are_found_by_name() -> None:
    assert metric_named("contains")("It opens at 7 am.", "7 am")
    assert metric_named("exact")("x", "x")
    assert metric_named("json:a.0")('{"a": ["Ghent"]}', "ghent")
    assert not metric_named("json:a.0")("not json", "ghent")
    assert metric_named("python:operator:eq")("x", "x")


def test_a_metric_of_ones_own_is_found_beside_the_study(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def near(answer, target):\n    return answer[0] == target[0]\n")
    assert metric_named("python:mine:near", tmp_path)("apple", "apricot")
    assert "answer[0]" in metric_source("python:mine:near", tmp_path)
    with pytest.raises(UsageError, match="cannot load the metric python:mine:near"):
        metric_named("python:mine:near", tmp_path / "elsewhere")


def test_a_metric_that_does_not_compile_is_a_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def near(answer target)")
    with pytest.raises(UsageError, match="cannot load the metric python:mine:near"):
        metric_named("python:mine:near", tmp_path)


@pytest.mark.parametrize("name", ["luck", "python:operator:nope", "python:no_such_module:f"])
def test_an_unknown_metric_is_a_users_mistake(name: str) -> None:
    with pytest.raises(UsageError, match="metric"):
        metric_named(name)
