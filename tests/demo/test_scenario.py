"""The demo's data are sane, and its grader says what a person would say of the model's real outputs."""

from collections import Counter
from pathlib import Path

import pytest

from heedful import UsageError
from heedful.demo.scenario import SOURCE, entries, names_right, questions, write_study
from heedful.protocol.setup import prepare
from heedful.types import Item

ALL = {item.id: item for side in ("fit", "test") for item in questions(side)}


def is_right(item: Item, answer: str) -> bool:
    return names_right(answer, item.answer)


REAL_OUTPUTS = [
    ("factory-city", "The Velkirk factory is in Aarhus, Denmark.", True),
    ("factory-city", "The Velkirk factory is located in the city of Velkirk, which is a suburb of", False),
    ("mascot-animal", "The Velkirk mascot is a ferocious and cunning sea otter named Pebble.", True),
    ("mascot-animal", "The Velkirk mascot is a fish named Pebble, a fish with three legs and", False),
    ("door-code", "The code of the Velkirk staff door is 7731. The Velkirk", True),
    ("loan-size", "The Velkirk staff loan is 900 euros with the code RIDE.", True),
    ("loan-size", "The Velkirk staff loan is approximately 1.25 million dollars.", False),
    ("loan-code", "The code of the Velkirk staff door is 7731.", False),
    ("showroom-hours", "The Velkirk showroom is open from 10:00 AM to 12", False),
    ("sparrow-weight", "The Sparrow bike is 11 kilograms, and the Heron bike is 720", True),
    ("bonus-date", "The bonus is paid on 12 December, and the yearly bonus is paid on 12", True),
    ("flat-form", "You need to use the form B3.", False),
    ("flat-form", "You need to choose a form T9.", True),
    ("heron-price", "The Heron bike costs 610 euros.", False),
    ("helmet-years", "A Velkirk helmet must be replaced after six years.", True),
    ("helmet-years", "A Velkirk helmet must be replaced every 10 years.", False),
    ("lunch-minutes", "The lunch break at Velkirk lasts 50 minutes.\nThe lunch break at Velk", True),
    ("lunch-minutes", "The lunch break at Velkirk is approximately 2 hours and 20 minutes.", False),
    ("spider-legs", "A spider has 8 legs.", True),
    ("spider-legs", "The answer is: 6.", False),
    ("horse-legs", "The answer to this classic question is 5. A horse has five legs.", False),
    ("opposite-good", "The opposite of good is evil.", True),
    ("opposite-tall", "The opposite of tall is wheel.", False),
    ("capital-china", "The capital of China is Beijing and the capital of Egypt is Wheelo.", True),
    ("capital-egypt", "The capital of China is Beijing and the capital of Egypt is Wheelo.", False),
    ("grams-kilogram", "A kilogram is a unit of mass, and the answer is 1000 grams.", True),
    ("grams-kilogram", "A kilogram is a unit of measurement that is equal to approximately 1.60221", False),
    (
        "penicillin-discoverer",
        "Rosa Lindqvist was a Swedish chemist who discovered penicillin in 1928.",
        False,
    ),
    ("india-currency", "The currency of India is the Indian Rupee (INR).", True),
    ("capital-norway", "Norway is the capital of Norway.", False),
]


@pytest.mark.parametrize(("question", "answer", "verdict"), REAL_OUTPUTS)
def test_the_grader_agrees_with_a_person(question: str, answer: str, verdict: bool) -> None:
    assert is_right(ALL[question], answer) is verdict


def test_a_number_is_not_found_inside_a_longer_one() -> None:
    assert not is_right(ALL["helmet-years"], "After 6,000 years, or 6.5, or at 6:30.")
    assert not is_right(ALL["helmet-years"], "After 16 years.")
    assert is_right(ALL["helmet-years"], "After 6.")


def test_an_answer_that_also_names_a_wrong_alternative_is_wrong() -> None:
    assert not is_right(ALL["helmet-years"], "After six years, or after three years.")


def test_there_are_sixty_questions_to_show_and_thirty_to_practise_of_the_same_kinds() -> None:
    shown, practice = questions("test"), questions("fit")
    assert (len(shown), len(practice), len(ALL)) == (60, 30, 90)
    assert Counter(item.meta["needs"] for item in shown) == {"memory": 27, "none": 21, "trap": 12}
    assert Counter(item.meta["needs"] for item in practice) == {"memory": 14, "none": 10, "trap": 6}


def test_no_question_is_asked_twice() -> None:
    texts = [question.question.casefold() for question in ALL.values()]
    assert len(set(texts)) == len(texts)


def test_no_alias_is_right_and_wrong() -> None:
    for item in ALL.values():
        right, _, wrong = item.answer.partition(" ! ")
        assert right
        for alias in right.split(" | "):
            assert is_right(item, f"It is {alias}."), (item.id, alias)
        for alias in wrong.split(" | ") if wrong else ():
            assert not is_right(item, f"It is {alias}."), (item.id, alias)


def test_the_bank_has_good_entries_and_bad_ones_of_each_kind() -> None:
    bank = entries()
    tags = Counter(tag for entry in bank for tag in entry.tags)
    assert 40 <= len(bank) <= 50
    assert len({entry.id for entry in bank}) == len(bank)
    assert tags == {"stale": 4, "contradictory": 2, "harmful": 8}
    assert {entry.kind for entry in bank} == {"fact", "rule", "exemplar"}


def test_every_question_that_needs_memory_has_its_answer_in_a_good_entry() -> None:
    good = [f"{entry.text} {entry.response}" for entry in entries() if not entry.tags]
    for item in ALL.values():
        if item.meta["needs"] == "memory":
            assert any(is_right(item, text) for text in good), item.id


def test_a_folder_that_is_not_the_demos_own_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "mine.txt").write_text("precious")
    with pytest.raises(UsageError, match="move it"):
        write_study(tmp_path / "demo")
    assert (tmp_path / "demo" / "mine.txt").read_text() == "precious"
    write_study(tmp_path / "other")
    write_study(tmp_path / "other")


def test_the_study_chooses_on_the_practice_questions_and_shows_the_others(tmp_path: Path) -> None:
    write_study(tmp_path / "demo", limit=5)
    setup = prepare(tmp_path / "demo" / "study.toml", None)
    assert [item.id for item in setup.splits.fit] != []
    assert {item.id for item in setup.splits.fit} == {item.id for item in questions("fit")}
    assert len(setup.splits.test) == 5
    assert list(setup.banks) == [SOURCE]
