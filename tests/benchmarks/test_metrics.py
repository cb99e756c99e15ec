from pathlib import Path

import pytest

from heedful import UsageError
from heedful.benchmarks.metrics import (
    metric_named,
    metric_source,
    read_number,
    same_choice,
    same_number,
    same_text,
)


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


def test_the_first_number_of_an_answer_counts() -> None:
    assert read_number("12 (because 5 + 7)") == 12


@pytest.mark.parametrize(
    ("answer", "target", "right"),
    [("B", "B", True), ("(b)", "B", True), ("B. a bird", "B", True), ("Bird", "B", False), ("", "A", False)],
)
def test_choices_are_letters_whatever_stands_around_them(answer: str, target: str, right: bool) -> None:
    assert same_choice(answer, target) is right


def test_text_is_compared_without_case_articles_and_punctuation() -> None:
    assert same_text("The  Blue-Whale!", "blue whale")
    assert not same_text("whale", "blue whale")


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
