"""TextWorld-Express, in a real Java process."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from heedful.agents.world_worker import WorldWorker
from heedful.environments.textworld_express import TextWorldExpress, TextWorldSettings
from heedful.errors import UsageError, WorldError
from heedful.testing import check_environment
from tests.environments.java_worlds import needs_java

COIN = TextWorldSettings(game="coin", parameters="numLocations=3,includeDoors=0,numDistractorItems=0")


@pytest.fixture(scope="module")
def world() -> Iterator[TextWorldExpress]:
    running = TextWorldExpress(COIN)
    yield running
    running.close()


@needs_java
def test_it_is_an_environment() -> None:
    check_environment(lambda: TextWorldExpress(COIN))


@needs_java
def test_the_goal_and_the_kind_come_with_every_observation(world: TextWorldExpress) -> None:
    seen = world.reset(20_000)
    assert "find the coin" in seen.goal
    assert seen.kind == "coin"
    assert "look around" in seen.actions


@needs_java
def test_a_world_whose_process_died_fails_with_a_sentence_and_starts_again() -> None:
    world = TextWorldExpress(COIN)
    try:
        first = world.reset(0)
        process = world._world._gateway.java_process
        process.kill()
        process.wait()
        with pytest.raises(WorldError, match="TextWorld-Express failed"):
            world.step("look around")
        world.close()
        assert world.reset(0) == first
    finally:
        world.close()


@needs_java
def test_a_world_whose_process_hangs_is_ended_and_starts_again() -> None:
    world = TextWorldExpress(COIN)
    try:
        first = world.reset(0)
        process = world._world._gateway.java_process
        os.kill(process.pid, signal.SIGSTOP)
        worker = WorldWorker(lambda: world, patience=0.5)
        with pytest.raises(WorldError, match="did not answer step"):
            asyncio.run(worker.step("look around"))
        assert process.poll() == -signal.SIGKILL
        assert world.reset(0) == first
    finally:
        world.close()


@needs_java
def test_an_episode_outside_the_sides_is_refused(world: TextWorldExpress) -> None:
    with pytest.raises(UsageError, match="no episode 5000"):
        world.reset(5_000)


@needs_java
def test_parameters_that_the_package_cannot_use_are_refused() -> None:
    broken = TextWorldExpress(TextWorldSettings(game="twc", parameters="numLocations=abc"))
    try:
        with pytest.raises(UsageError, match="cannot play twc with the parameters 'numLocations=abc'"):
            broken.reset(0)
    finally:
        broken.close()


def test_an_unknown_game_is_refused_before_java_starts() -> None:
    with pytest.raises(UsageError, match="there is no game 'chess'"):
        TextWorldExpress(TextWorldSettings(game="chess"))
