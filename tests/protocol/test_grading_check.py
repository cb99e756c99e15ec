"""A metric that misreads answers is noticed before anyone believes the result."""

from dataclasses import replace
from pathlib import Path

from heedful.benchmarks.questions import OwnQuestions
from heedful.protocol.grading_check import GradingWarning, check_grading, warning_lines
from heedful.protocol.ledger import Pass
from heedful.stages.answer import read_answer
from heedful.types import Choice, Decode, Item
from tests.making import ledger_row
from tests.protocol.making import Letters

NUMBERS = OwnQuestions(name="own", fit=Path(), metric="number")


def graded(own: OwnQuestions, replies: dict[str, str], target: str) -> tuple[GradingWarning, ...]:
    choices = (Choice(label="A", text="a penguin"), Choice(label="B", text="a lark"))
    asked = choices if own.metric == "choice" else ()
    items = {id: Item(id=id, question=f"Question {id}?", answer=target, choices=asked) for id in replies}
    return check_grading([passed(own, items[id], text) for id, text in replies.items()], items, own)


def passed(own: OwnQuestions, item: Item, text: str) -> Pass:
    answer = read_answer(Decode(text=text), own.task(item)).answer
    return ledger_row("none", item.id, text=text, answer=answer, right=own.grade(answer, item))


WORKED = {f"q{n}": f"{n} apples and 5 more. Answer: 12" for n in range(10)}


def test_replies_that_end_in_the_target_are_right_and_no_warning_is_given() -> None:
    assert graded(NUMBERS, WORKED, "12") == ()


def test_wrong_replies_that_contain_the_target_are_shown_with_three_examples() -> None:
    first_number = replace(NUMBERS, answer_pattern=r"\A(\d+)")
    (warning,) = graded(first_number, WORKED, "12")
    assert "10 of the 10 replies graded wrong contain the right answer" in warning.problem
    assert "answer_pattern" in warning.problem
    assert [example.task for example in warning.examples] == ["q0", "q1", "q2"]
    assert warning.examples[1].answer == "1"
    assert (
        "q1: the right answer is '12', graded was '1', the reply was '1 apples" in warning_lines(warning)[2]
    )


def test_a_few_wrong_replies_that_happen_to_contain_the_target_are_no_sign() -> None:
    honest = {f"q{n}": f"{n} + 1 = {n + 1}. Answer: {100 + n}" for n in range(20)}
    assert graded(NUMBERS, {**honest, "x": "12 + 1. Answer: 13", "y": "12 + 2. Answer: 14"}, "12") == ()


def test_sentences_under_a_metric_for_short_answers_are_noticed() -> None:
    text = replace(NUMBERS, metric="text")
    said = {f"q{n}": f"As far as I know, number {n} is in the city of Ghent." for n in range(6)}
    hidden, sentences = graded(text, said, "Ghent")
    assert "6 of the 6" in hidden.problem
    assert "accepts short answers only, but 6 of 6 answers are whole sentences" in sentences.problem
    assert graded(replace(text, metric="contains"), said, "Ghent") == ()


def test_a_choice_named_by_its_text_instead_of_its_letter_is_noticed() -> None:
    said = {f"q{n}": "It must be a penguin" for n in range(4)}
    (warning,) = graded(replace(NUMBERS, metric="choice"), said, "A")
    assert "4 of the 4" in warning.problem


def test_published_benchmarks_are_not_questioned() -> None:
    item = Letters().load(Path(), "fit")[0]
    row = ledger_row("none", item.id, text="a", answer="b", right=False)
    assert check_grading([row] * 5, {item.id: item}, Letters()) == ()
