"""ScienceWorld, in a real Java process."""

from collections.abc import Iterator

import pytest

from heedful.environments.scienceworld import ScienceWorld, ScienceWorldSettings
from heedful.errors import UsageError
from tests.environments.java_worlds import needs_java

pytestmark = pytest.mark.slow
TASK = "find-non-living-thing"
TASKS = f"{TASK},boil"


@pytest.fixture(scope="module")
def world() -> Iterator[ScienceWorld]:
    running = ScienceWorld(ScienceWorldSettings(tasks=TASKS))
    yield running
    running.close()


@needs_java
def test_the_sides_are_the_published_variations(world: ScienceWorld) -> None:
    sides = [set(world.seeds(side)) for side in ("pool", "fit", "test")]
    assert [len(side) for side in sides] == [164, 82, 84]
    assert len(set.union(*sides)) == 330


@needs_java
def test_the_gold_path_scores_one_twice(world: ScienceWorld) -> None:
    seed = next(seed for seed in world.seeds("pool") if seed % 10_000 > 30)
    path = world.gold(seed)
    traces = []
    for _ in range(2):
        trace = [world.reset(seed), *(world.step(action) for action in path)]
        assert (trace[-1].score, trace[-1].done) == (1.0, True)
        traces.append(trace)
    assert traces[0] == traces[1]
    assert traces[0][0].kind == TASK


@needs_java
def test_the_room_is_always_in_sight_and_solutions_do_not_open_open_doors(world: ScienceWorld) -> None:
    seed = next(seed for seed in world.seeds("pool") if seed % 10_000 > 30)
    path = world.gold(seed)
    assert not [action for action in path if action.startswith(("open door", "look around"))]
    first = world.reset(seed)
    after = world.step("go to kitchen" if "go to kitchen" in path else path[0])
    assert all("This room is called" in seen.text for seen in (first, after))
    assert not {"reset task", "task"} & {*first.actions, *after.actions}


@needs_java
def test_an_unknown_action_changes_nothing_and_a_wrong_focus_ends_at_zero(world: ScienceWorld) -> None:
    boil = next(seed for seed in world.seeds("test") if seed % 10_000 < 30)
    first = world.reset(boil)
    assert "boil" in first.goal
    after = world.step("xyzzy")
    assert "No known action" in after.text
    assert (after.score, after.done, after.actions) == (first.score, first.done, first.actions)
    assert world.breaks("look around") is None
    assert world.breaks("focus on agent") == "contract:focus"
    end = world.step("focus on agent")
    assert (end.score, end.done, end.actions) == (0.0, True, ())


@needs_java
def test_a_task_or_variation_that_does_not_exist_is_refused(world: ScienceWorld) -> None:
    place = world.seeds("pool")[0] // 10_000
    with pytest.raises(UsageError, match="has no variation 9999"):
        world.reset(place * 10_000 + 9_999)
    with pytest.raises(UsageError, match="no episode 990000"):
        world.reset(990_000)
    with pytest.raises(UsageError, match="ScienceWorld has no task 'fly'"):
        ScienceWorld(ScienceWorldSettings(tasks="fly")).seeds("test")
