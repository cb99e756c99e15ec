"""Entries that hold a question that is asked."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import msgspec
import pytest

from heedful import UsageError, new_entry
from heedful.ports import Benchmark
from heedful.protocol.splits import Splits, split
from heedful.protocol.study import SplitSettings
from heedful.types import Item, Side


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


class Hundred:
    """A benchmark of 100 rows a side; only what a split needs."""

    name = "hundred"

    def load(self, data: Path, side: Side) -> Sequence[Item]:
        return [Item(id=f"{side}{at}", question=f"{side} question {at}?", answer="1") for at in range(100)]


def test_unused_rows_are_those_that_the_same_split_leaves() -> None:
    settings = SplitSettings(fit=60, test=70, pool=20, seed=3)
    benchmark = cast(Benchmark, Hundred())
    plain = split(benchmark, Path(), settings)
    unseen = split(benchmark, Path(), msgspec.structs.replace(settings, unused=50))
    known = {item.id for part in plain.parts.values() for item in part}
    assert len(known) == 150
    assert {item.id for item in unseen.test}.isdisjoint(known)
    assert len(unseen.test) == 50
    assert (unseen.fit, unseen.pool) == (plain.fit, plain.pool)
    with pytest.raises(UsageError, match="lower \\[split\\] unused"):
        split(benchmark, Path(), msgspec.structs.replace(settings, unused=51))


class Copies(Hundred):
    """The last 30 rows of a side repeat the first."""

    def load(self, data: Path, side: Side) -> Sequence[Item]:
        return [
            Item(id=f"{side}{at}", question=f"{side} question {at % 70}?", answer="1") for at in range(100)
        ]


def test_an_unused_row_that_repeats_a_fit_question_is_left_out() -> None:
    settings = SplitSettings(fit=60, test=100, seed=3, unused=1)
    benchmark = cast(Benchmark, Copies())
    with pytest.raises(UsageError, match=r"has [0-9]+ rows that this split leaves unused") as error:
        split(benchmark, Path(), msgspec.structs.replace(settings, unused=40))
    fresh = int(str(error.value).split(" has ")[1].split()[0])
    found = split(benchmark, Path(), msgspec.structs.replace(settings, unused=fresh))
    asked = ({item.question for item in side} for side in (found.fit, found.test))
    assert set.intersection(*asked) == set()
    assert 0 < fresh < 40
