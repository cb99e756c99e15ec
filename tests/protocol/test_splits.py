"""Entries that hold a question that is asked."""

import pytest

from heedful import (
    new_entry,
)
from heedful.protocol.splits import Splits
from heedful.types import Item


def test_a_test_question_with_its_choices_under_it_is_found_in_a_bank() -> None:
    test = Item(id="t", question="Which bird swims?", answer="A")
    bank = [
        new_entry(f"{question}\nA. penguin\nB. lark", kind="exemplar", response="Answer: A", id=question)
        for question in ("Which bird swims?", "Which bird sings?")
    ]
    kept = Splits(fit=(), test=(test,), pool=()).unasked(bank)
    assert [entry.id for entry in kept] == ["Which bird sings?"]


@pytest.mark.parametrize("place", ["fit", "test", "test_side"])
def test_a_question_is_found_within_an_entry_of_a_bank(place: str) -> None:
    question = Item(id="q", question="Which of these birds swims best under water?", answer="A")
    asked = Splits(**{"fit": (), "test": (), "pool": (), place: (question,)})
    bank = [
        new_entry(f"Q: {question.question} A: the penguin.", kind="fact", id="within"),
        new_entry("A hard one", kind="exemplar", response=question.question.upper(), id="as the response"),
        new_entry("Which of these birds swims best in air?", kind="fact", id="another"),
    ]
    assert [entry.id for entry in asked.unasked(bank)] == ["another"]


def test_a_short_question_within_a_longer_entry_is_not_taken_for_it() -> None:
    short = Item(id="q", question="Who swims?", answer="A")
    bank = [new_entry("Ask yourself: who swims? Most birds do not.", kind="rule", id="rule")]
    assert Splits(fit=(short,), test=(), pool=()).unasked(bank) == bank
