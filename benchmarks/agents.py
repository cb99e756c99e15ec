"""Steps per second of each world with a scripted model, and the time of the world's part of a step.

usage: python benchmarks/agents.py [--json] [--episodes N] [--data FOLDER] [WORLD ...]

WebShop needs its products (--data or HEEDFUL_DATA), the other two worlds need Java and the extra agents.
A world that cannot be made is named and left out.
"""

import argparse
import asyncio
import json
import os
import random
import time
from dataclasses import dataclass, field
from pathlib import Path

from heedful import ScriptedModel, arms
from heedful.agents.play import Arm, Player
from heedful.agents.step_task import ActingSettings
from heedful.agents.world_worker import WorldWorker
from heedful.environments import EnvironmentOptions, make_environment
from heedful.errors import MissingError
from heedful.ports import Environment
from heedful.types import EpisodeSide, Observation, Prompt, Spec

OPTIONS: dict[str, dict[str, str]] = {
    "webshop": {},
    "scienceworld": {"tasks": "find-non-living-thing"},
    "textworld_express": {"game": "coin"},
}
MODEL_STEP_SECONDS = 2.0
"""The measuring model decodes an action in one to three seconds on two cores."""


@dataclass
class TimedWorld:
    """An environment that measures its own steps."""

    world: Environment
    seconds: float = 0.0
    steps: int = 0
    spec: Spec = field(default_factory=dict)

    def seeds(self, side: EpisodeSide) -> list[int]:
        return list(self.world.seeds(side))

    def reset(self, seed: int) -> Observation:
        return self.world.reset(seed)

    def step(self, action: str) -> Observation:
        start = time.perf_counter()
        seen = self.world.step(action)
        self.seconds += time.perf_counter() - start
        self.steps += 1
        return seen

    def close(self) -> None:
        self.world.close()


def wanderer() -> ScriptedModel:
    """Takes a random valid action of the list in the prompt."""
    rng = random.Random(7)

    def act(prompt: Prompt) -> tuple[str, float]:
        listed = [line[2:] for line in prompt.messages[-1].content.splitlines() if line.startswith("- ")]
        harmless = [action for action in listed if not action.startswith(("focus", "click[buy"))]
        chosen = rng.choice(harmless or listed)
        return (chosen.replace("...", "red mug"), -0.5)

    return ScriptedModel(script=act)


async def measure(world: TimedWorld, episodes: int) -> dict[str, float]:
    player = Player(model=wanderer(), settings=ActingSettings(steps=30))
    worker = WorldWorker(lambda: world, 120.0)
    arm = Arm(name="no memory", policy=arms.never())
    seeds = world.seeds("test")[:episodes]
    world.reset(seeds[0])
    start = time.perf_counter()
    for seed in seeds:
        await player.play(worker, "test", seed, arm)
    seconds = time.perf_counter() - start
    own = world.seconds / world.steps
    return {
        "steps_per_second": world.steps / seconds,
        "world_ms_per_step": 1000 * own,
        "share_of_a_model_step": own / MODEL_STEP_SECONDS,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("worlds", nargs="*", default=list(OPTIONS))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--episodes", type=int, default=5)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEEDFUL_DATA"))
    chosen = parser.parse_args()
    results: dict[str, dict[str, float]] = {}
    for name in chosen.worlds:
        data = None if chosen.data is None else Path(chosen.data)
        try:
            made = make_environment(name, EnvironmentOptions(data=data, options=OPTIONS[name]))
            world = TimedWorld(made)
            results[name] = asyncio.run(measure(world, chosen.episodes))
            world.close()
        except MissingError as error:
            print(f"{name}: left out: {error}")
    if chosen.json:
        print(json.dumps(results, indent=2))
        return
    for name, numbers in results.items():
        print(
            f"{name}: {numbers['steps_per_second']:.0f} steps per second, the world takes "
            f"{numbers['world_ms_per_step']:.1f} ms per step, "
            f"{numbers['share_of_a_model_step']:.1%} of a model step of {MODEL_STEP_SECONDS:g} s"
        )


if __name__ == "__main__":
    main()
