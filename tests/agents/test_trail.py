"""The window of past steps in a prompt."""

from itertools import pairwise

from heedful.agents.step_task import ActingSettings, step_task
from heedful.agents.trail import Trail
from heedful.types import Observation


def walk(steps: int) -> Trail:
    trail = Trail(now=Observation(text="room 0"), goal="Go.")
    for number in range(steps):
        trail.move(f"go {number}", Observation(text=f"room {number + 1}" + "." * 90))
    return trail


def test_the_window_moves_in_strides_and_grows_at_its_end_in_between() -> None:
    trail = walk(0)
    starts = []
    for number in range(40):
        trail.move(f"go {number}", Observation(text=f"room {number + 1}" + "." * 90))
        lines = trail.history(tokens=300, length=200)
        starts.append(lines[0].split(" -> ")[0])
        assert sum(len(line) for line in lines) <= 300 * 3.5
    moves = sum(one != other for one, other in pairwise(starts))
    assert 0 < moves <= 8


def test_the_history_tells_what_followed_each_action_but_the_last_cut_alike_in_every_prompt() -> None:
    trail = walk(3)
    before = trail.history(tokens=1000, length=20)
    assert before[0] == "1. go 0 -> room 1" + "." * 13 + "…"
    assert before[-1] == "3. go 2"
    trail.move("go on", Observation(text="far\naway"))
    trail.move("stop", Observation(text="there"))
    after = trail.history(tokens=1000, length=20)
    assert after[:2] == before[:2]
    assert after[-2:] == ("4. go on -> far away", "5. stop")


def test_shortening_drops_the_older_half_until_nothing_is_left() -> None:
    trail = walk(4)
    counts = [len(trail.history(1000, 200)) for _ in range(4) if trail.shorten()]
    assert counts == [2, 1, 0]


def test_actions_that_were_tried_at_the_same_observation_are_left_out_unless_all_were() -> None:
    here = Observation(text="here", actions=("wait", "sing"))
    trail = Trail(now=here, goal="Go.")
    trail.move("wait", here)
    assert trail.untried() == ("sing",)
    trail.move("sing", here)
    assert trail.untried() == ("wait", "sing")


def test_repeating_earlier_steps_is_a_loop_and_new_ones_are_not() -> None:
    assert not walk(30).in_loop()
    trail = Trail(now=Observation(text="here"), goal="Go.")
    for _ in range(4):
        trail.move("wait", Observation(text="here"))
    assert not trail.in_loop()
    trail.move("wait", Observation(text="here"))
    assert trail.in_loop()
    assert not any(step.effect for step in trail.steps)


def test_a_prompt_speaks_of_words_of_ones_own_only_after_an_action_took_them() -> None:
    def prompt() -> str:
        return step_task(trail, ActingSettings(), "step").instructions

    trail = Trail(now=Observation(text="a shop", actions=("enter", "leave")), goal="Buy.")
    closed = prompt()
    trail.move("enter", Observation(text="inside", actions=("search[...]",)))
    opened = prompt()
    trail.move("search[red shoes]", Observation(text="results", actions=("click[first]",)))
    assert "[...]" not in closed
    assert "[...]" in opened
    assert prompt() == opened, "the beginning of a prompt stays, so that it is read once"
