import json

import numpy as np
import pytest

from heedful.governance.distill import (
    MOST_WORDS,
    AttemptGroup,
    RuleChange,
    change_prompt,
    changed,
    clean_rule,
    grouped,
    lesson_prompt,
    read_change,
    read_lesson,
)
from heedful.governance.exemplars import covering

RULES = {"r1": "Add only what is of one kind.", "r2": "Read the last sentence first."}


def test_the_writer_sees_both_attempts_and_the_list() -> None:
    asked = lesson_prompt(AttemptGroup(task="t", question="How many?", right="3 - 1 = 2", wrong="3 + 1 = 4"))
    said = asked.messages[0].content
    assert "3 - 1 = 2" in said
    assert "3 + 1 = 4" in said
    assert asked.schema is not None
    assert "[r2] Read the last" in change_prompt("Subtract what was eaten.", RULES).messages[0].content


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (
            '{"difference": "x", "rule": "Subtract what was eaten or lost."}',
            "Subtract what was eaten or lost.",
        ),
        ('Sure! {"rule": "- Subtract what was  eaten."} bye', "Subtract what was eaten."),
        ('{"rule": "Too short."}', None),
        (f'{{"rule": "{"word " * (MOST_WORDS + 1)}"}}', None),
        ('{"rule": 3}', None),
        ('["rule"]', None),
        ("nonsense", None),
        ('{"rule": "cut off', None),
    ],
)
def test_a_lesson_is_read_or_refused(text: str, rule: str | None) -> None:
    assert read_lesson(text, "How many apples did he eat?") == rule


@pytest.mark.parametrize(
    ("rule", "general"),
    [
        ("Subtract what Rachel has eaten from the total.", False),
        ("Take away 12 from what there was at first.", False),
        ("Subtract what Paula has eaten from the total.", True),
        ("Take away 1 for the day itself.", True),
        ("Add first. How much is left comes last.", True),
    ],
)
def test_a_rule_with_a_name_or_a_number_of_the_problem_is_no_lesson(rule: str, general: bool) -> None:
    problem = "Rachel had 12 cookies and ate half of them. How many are left?"
    assert (read_lesson(json.dumps({"rule": rule}), problem) == rule) is general


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ('{"operation": "none", "id": "", "rule": ""}', RuleChange(operation="none")),
        ('{"operation": "delete", "id": "[r1]", "rule": ""}', RuleChange(operation="delete", id="r1")),
        (
            '{"operation": "update", "id": "r2", "rule": "Read the question before the numbers."}',
            RuleChange(operation="update", id="r2", rule="Read the question before the numbers."),
        ),
        (
            '{"operation": "add", "id": "", "rule": ""}',
            RuleChange(operation="add", rule="Subtract what was eaten."),
        ),
        ('{"operation": "update", "id": "r9", "rule": "Read it twice, then count."}', None),
        ('{"operation": "update", "id": "r2", "rule": "No."}', None),
        ('{"operation": "improve", "id": "r2", "rule": ""}', None),
        ("I would add it.", None),
    ],
)
def test_a_change_is_read_or_refused(text: str, change: RuleChange | None) -> None:
    assert read_change(text, "Subtract what was eaten.", RULES) == change


def test_changes_are_made_to_the_list() -> None:
    assert (
        changed(RULES, RuleChange(operation="add", rule="New one here, please."), 7)["r7"]
        == "New one here, please."
    )
    assert changed(RULES, RuleChange(operation="add", rule=RULES["r1"].upper()), 7) == RULES
    assert changed(RULES, RuleChange(operation="update", id="r1", rule="Better."), 7)["r1"] == "Better."
    assert list(changed(RULES, RuleChange(operation="delete", id="r1"), 7)) == ["r2"]
    assert changed(RULES, RuleChange(operation="none"), 7) == RULES


def test_a_rule_has_at_most_32_words() -> None:
    assert clean_rule("word " * MOST_WORDS) is not None
    assert clean_rule("word " * (MOST_WORDS + 1)) is None


def test_a_group_needs_a_wrong_attempt_and_something_right() -> None:
    assert grouped([("a", True), ("b", False)], "w") == ("a", "b")
    assert grouped([("b", False)], "w") == ("w", "b")
    assert grouped([("b", False)], None) is None
    assert grouped([("a", True)], "w") is None


def test_exemplars_cover_the_space_and_prefer_mistakes() -> None:
    """Two tight clusters and a loner: one of each first, then the cluster with mistakes."""
    points = np.array([[1, 0], [0.99, 0.14], [0, 1], [0.14, 0.99], [-1, 0]], dtype=float)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    alike = points @ points.T
    right = np.zeros(5, dtype=bool)
    first = covering(alike, right, 3)
    assert {place // 2 for place in first} == {0, 1, 2}
    wrong = right.copy()
    wrong[4] = True
    assert 4 in covering(alike, wrong, 2)
    assert covering(alike, right, 99) == covering(alike, right, 5)
