"""Actions in replies, and the list of actions in a prompt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.agents.actions import REPLY_PATTERN, match_action, shortlist
from heedful.stages.answer import read_answer
from heedful.types import Decode, Task

VALID = ("click[buy now]", "click[b01]", "search[...]", "look around")


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ("click[buy now]", "click[buy now]"),
        ("Click [Buy  Now].", "click[buy now]"),
        ("search[red  mug]", "search[red mug]"),
        ("Search [red mug", "search[red mug]"),
        ("search[...]", None),
        ("search[]", None),
        ("search", None),
        ("LOOK AROUND", "look around"),
        ("look around [...].", "look around"),
        ("look around (to see more", "look around"),
        ("look", None),
        ("click [red]", None),
        ("", None),
    ],
)
def test_a_reply_names_a_valid_action_or_none(reply: str, action: str | None) -> None:
    assert match_action(reply, VALID) == action


def test_without_a_list_of_valid_actions_everything_is_valid() -> None:
    assert match_action(" wave ", ()) == "wave"
    assert match_action("  ", ()) is None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("go east", "go east"),
        ("Action: go east\nBecause it is there.", "go east"),
        ("- `go east`", "go east"),
        ("\n\n  Next action: go east", "go east"),
        ("<think>hm</think>go east", "go east"),
    ],
)
def test_the_answer_is_the_first_line_without_its_dressing(text: str, answer: str) -> None:
    task = Task(question="", answer_pattern=REPLY_PATTERN)
    read = read_answer(Decode(text=text), task)
    assert read.answer.strip() == answer


def test_a_long_list_is_cut_to_what_goal_and_observation_speak_of() -> None:
    actions = [f"open drawer {n}" for n in range(50)] + ["take apple", "go to kitchen", "take pear"]
    shown = shortlist(actions, "Find the apple.", "You see drawer 7.", limit=6)
    assert len(shown) == 6
    assert {"take apple", "go to kitchen", "open drawer 7"} <= set(shown)
    assert list(shown) == sorted(shown, key=actions.index)


def test_verbs_of_the_goal_have_most_places_of_a_short_list() -> None:
    animals = ("wolf", "mouse", "brown bear")
    things = (*animals, *(f"stone {n}" for n in range(20)))
    verbs = ("close", "dunk", "eat", "focus on", "mix", "move", "open", "pour", "read", "use", "wait for")
    actions = [f"{verb} {thing}" for verb in verbs for thing in things]
    goal = "Focus on the animal with the longest life span."
    shown = shortlist(actions, goal, "You see a wolf, a mouse and a brown bear.", limit=20)
    assert {f"focus on {animal}" for animal in animals} <= set(shown)
    assert {action.split()[0] for action in shown} == {verb.split()[0] for verb in verbs}


def test_the_object_of_the_last_action_stays_on_a_short_list() -> None:
    actions = [f"{verb} thing {n}" for verb in ("look at", "push") for n in range(100)]
    shown = shortlist(actions, "Tidy up.", "You see many things.", limit=4, last="look at thing 57")
    assert "push thing 57" in shown


@given(st.lists(st.text(max_size=12), unique=True, max_size=30), st.integers(1, 10))
def test_a_shortlist_is_a_part_of_the_list_in_its_order(actions: list[str], limit: int) -> None:
    shown = shortlist(actions, "goal a", "seen b", limit)
    assert len(shown) == min(limit, len(actions))
    assert list(shown) == [action for action in actions if action in shown]
