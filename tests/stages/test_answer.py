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
def test_the_answer_is_found(text, pattern, answer):
    assert read_answer(Decode(text=text), task(answer_pattern=pattern)).answer == answer


@given(text=st.text(), pattern=st.sampled_from([None, r"(\w+)", r"\d", r"a(.*)b"]))
def test_the_span_always_points_at_the_answer(text, pattern):
    read = read_answer(Decode(text=text), task(answer_pattern=pattern))
    assert read.answer == ("" if read.span is None else text[slice(*read.span)])
    assert read.answer == read.answer.strip()


def test_answers_are_compared_without_case_spaces_and_full_stop():
    assert same_answer(" Fred  Ville.", "fred ville")
    assert not same_answer("fred", "ville")
