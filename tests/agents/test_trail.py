"""The window of past steps in a prompt."""

from itertools import pairwise

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
        messages = trail.messages(tokens=300, length=200)
        starts.append(messages[0].content)
        assert sum(len(message.content) for message in messages) <= 300 * 3.5
    moves = sum(one != other for one, other in pairwise(starts))
    assert 0 < moves <= 8


def test_a_long_observation_is_cut_alike_in_every_prompt() -> None:
    trail = walk(3)
    before = trail.messages(tokens=1000, length=20)
    trail.move("go on", Observation(text="far away"))
    assert trail.messages(tokens=1000, length=20)[: len(before)] == before
    assert all(len(message.content) <= 20 for message in before)


def test_shortening_drops_the_older_half_until_nothing_is_left() -> None:
    trail = walk(4)
    counts = [len(trail.messages(1000, 200)) for _ in range(4) if trail.shorten()]
    assert counts == [4, 2, 0]


def test_repeating_earlier_steps_is_a_loop_and_new_ones_are_not() -> None:
    assert not walk(30).in_loop()
    trail = Trail(now=Observation(text="here"), goal="Go.")
    for _ in range(8):
        trail.move("wait", Observation(text="here"))
    assert not trail.in_loop()
    trail.move("wait", Observation(text="here"))
    assert trail.in_loop()
    assert not any(step.effect for step in trail.steps)
