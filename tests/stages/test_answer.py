import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.stages.answer import read_answer, same_answer
from heedful.types import Decode
from tests.making import task


@pytest.mark.parametrize(
    ("text", "pattern", "answer"),
    [
        ("  blue \n", None, "blue"),
        ("14 - 8 = 6. Answer: 6", r"Answer:\s*(-?\d+)", "6"),
        ("Answer: 3 … no. Answer: 4.", r"Answer:\s*(-?\d+)", "4"),
        ("I do not know.", r"Answer:\s*(-?\d+)", ""),
        ("<think>maybe Answer: 9</think>\nAnswer: 2", r"Answer:\s*(-?\d+)", "2"),
        ("<think>it never ends", None, ""),
        ("go north", r"go \w+", "go north"),
        ("", None, ""),
    ],
)
def test_the_answer_is_found(text: str, pattern: str | None, answer: str) -> None:
    assert read_answer(Decode(text=text), task(answer_pattern=pattern)).answer == answer


@given(text=st.text(), pattern=st.sampled_from([None, r"(\w+)", r"\d", r"a(.*)b"]))
def test_the_span_always_points_at_the_answer(text: str, pattern: str | None) -> None:
    read = read_answer(Decode(text=text), task(answer_pattern=pattern))
    assert read.answer == ("" if read.span is None else text[slice(*read.span)])
    assert read.answer == read.answer.strip()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("$12", "12", True),
        ("12.0", "12", True),
        ("1,250.50", "$1250.5", True),
        ("-3", "3", False),
        ("12", "120", False),
        ("0.5", "0.50", True),
        ("1,2", "12", False),
        ("12 apples", "12", False),
    ],
)
def test_a_bare_amount_is_compared_however_it_is_spelt(one: str, other: str, same: bool) -> None:
    assert same_answer(one, other) is same


def test_answers_are_compared_without_case_spaces_and_full_stop() -> None:
    assert same_answer(" Fred  Ville.", "fred ville")
    assert not same_answer("fred", "ville")
