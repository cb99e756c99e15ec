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


@given(st.lists(st.text(max_size=12), unique=True, max_size=30), st.integers(1, 10))
def test_a_shortlist_is_a_part_of_the_list_in_its_order(actions: list[str], limit: int) -> None:
    shown = shortlist(actions, "goal a", "seen b", limit)
    assert len(shown) == min(limit, len(actions))
    assert list(shown) == [action for action in actions if action in shown]
