import random

import pytest

from heedful import UsageError, new_entry
from heedful.governance.damage import DAMAGES, corrupted


def damaged(kind: str, text: str) -> str | None:
    return DAMAGES[kind](text, random.Random(1))


@pytest.mark.parametrize(
    ("kind", "text", "wrong"),
    [
        ("wrong-operation", "Price minus the discount.", "Price plus the discount."),
        ("wrong-operation", "Subtract what was eaten.", "Add what was eaten."),
        ("wrong-operation", "Multiply, even when there are more.", "Divide, even when there are more."),
        ("wrong-operation", "Take the larger one.", "Take the smaller one."),
        ("wrong-operation", "14 - 8 = 6. Answer: 6", "14 + 8 = 22. Answer: 22"),
        (
            "wrong-operation",
            "$ 16 + $ 6 = $ 22 at first. Answer: 22",
            "$ 16 - $ 6 = $ 10 at first. Answer: 10",
        ),
        ("wrong-operation", "5 + 8 = 13. Answer: 13", "5 * 8 = 40. Answer: 40"),
        (
            "wrong-operation",
            "56 / 4 = 14, so 14 a day. Answer: 14",
            "56 * 4 = 224, so 224 a day. Answer: 224",
        ),
        ("wrong-operation", "7 * 10 = 70. 70 - 2 = 68. Answer: 68", "7 * 10 = 70. 70 + 2 = 72. Answer: 72"),
        ("wrong-operation", "4 - 2 = 2. Answer: 2", "4 + 2 = 6. Answer: 6"),
        ("wrong-operation", "5 - 0 = 5. Answer: 5", "5 + 0 = 5. Answer: 5"),
        ("wrong-operation", "1.5 + 2 = 3.5. Answer: 3.5", "1.5 - 2 = 3.5. Answer: 3.5"),
        ("wrong-operation", "Well-known facts hold.", "Well-known facts hold."),
        ("negated-condition", "If it rains, stay.", "Unless it rains, stay."),
        ("negated-condition", "Never add them.", "Always add them."),
        ("negated-condition", "Green.", "Green."),
    ],
)
def test_damage_is_one_change_of_the_kind_it_says(kind: str, text: str, wrong: str) -> None:
    assert damaged(kind, text) == wrong


def test_a_number_becomes_another_of_as_many_digits_everywhere() -> None:
    wrong = damaged("wrong-number", "14 - 8 = 6. Answer: 6")
    assert wrong is not None
    assert len(wrong) == len("14 - 8 = 6. Answer: 6")
    result, answer = wrong.partition(" = ")[2].split(". Answer: ")
    assert result == answer != "6"
    assert "14" not in wrong


def test_an_exemplars_problem_stays_and_its_worked_answer_is_damaged() -> None:
    entry = new_entry("How many are left of 14 after 8?", kind="exemplar", response="14 - 8 = 6. Answer: 6")
    wrong = corrupted(entry)
    assert wrong.text == entry.text
    assert wrong.response != entry.response
    assert wrong.id == entry.id
    assert wrong.digest != entry.digest


def test_damage_is_the_same_every_time_and_keeps_the_length() -> None:
    entry = new_entry("What is left is the start minus what was used.", kind="rule", id="left")
    assert corrupted(entry, 3) == corrupted(entry, 3)
    assert abs(len(corrupted(entry).text) - len(entry.text)) <= 0.2 * len(entry.text)


def test_what_cannot_be_damaged_is_a_users_mistake() -> None:
    with pytest.raises(UsageError, match="nothing to damage"):
        corrupted(new_entry("Green.", kind="rule"))
