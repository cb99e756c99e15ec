"""Real episodes of all three worlds with the smoke model."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful import EmbeddedModel
from heedful.agents.agent_study import RecallSettings, memory_sources
from heedful.agents.episode_record import EpisodeRecord
from heedful.agents.hints import gold_entries
from heedful.agents.play import Arm, Player
from heedful.agents.step_task import ActingSettings
from heedful.agents.world_worker import WorldWorker
from heedful.environments.scienceworld import ScienceWorld, ScienceWorldSettings
from heedful.environments.textworld_express import TextWorldExpress, TextWorldSettings
from heedful.environments.webshop.catalogue import read_products
from heedful.environments.webshop.shop import WebShop
from heedful.ports import Environment
from tests.agents.making import UNSURE
from tests.environments.java_worlds import needs_java
from tests.environments.making import write_products

STEPS = 2
SETTINGS = ActingSettings(
    steps=STEPS, history_tokens=300, observation_length=500, shown_actions=8, max_tokens=16
)


def play(make: Callable[[], Environment], model: EmbeddedModel, times: int = 1) -> list[EpisodeRecord]:
    """The first test episode, with memory from the first pool episodes."""
    world = make()
    try:
        entries = gold_entries(world, world.seeds("pool")[:2], limit=6)
        player = Player(
            model=model,
            settings=SETTINGS,
            sources=memory_sources(entries, RecallSettings(method="bm25", limit=1)),
        )
        worker = WorldWorker(lambda: world, 120.0)
        seed = world.seeds("test")[0]

        async def all_of_them() -> list[EpisodeRecord]:
            arm = Arm(name="threshold", policy=UNSURE)
            return [await player.play(worker, "test", seed, arm) for _ in range(times)]

        return asyncio.run(all_of_them())
    finally:
        world.close()


def check(record: EpisodeRecord) -> None:
    assert (record.failed, record.error) == (False, "")
    assert 1 <= len(record.steps) <= STEPS
    assert all(step.confidence is not None for step in record.steps)
    assert all(step.first.usage.prompt_tokens > 0 for step in record.steps)


@pytest.mark.engine
def test_webshop_is_played_and_the_same_trace_comes_twice(engine: EmbeddedModel, tmp_path: Path) -> None:
    products = read_products(write_products(tmp_path, count=400))
    one, two = play(lambda: WebShop(products), engine, times=2)
    check(one)
    assert [step.action for step in one.steps] == [step.action for step in two.steps]
    before, after = ([step.confidence for step in record.steps] for record in (one, two))
    assert before == pytest.approx(after, abs=0.02)


@needs_java
@pytest.mark.engine
def test_textworld_express_is_played(engine: EmbeddedModel) -> None:
    (record,) = play(lambda: TextWorldExpress(TextWorldSettings(parameters="numLocations=2")), engine)
    check(record)


@needs_java
@pytest.mark.engine
def test_scienceworld_is_played(engine: EmbeddedModel) -> None:
    settings = ScienceWorldSettings(tasks="find-non-living-thing")
    (record,) = play(lambda: ScienceWorld(settings), engine)
    check(record)
