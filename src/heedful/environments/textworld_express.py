"""TextWorld-Express (Jansen and Côté 2022): small fast games, in a Java process."""

from collections.abc import Sequence
from typing import Any

import msgspec

from heedful.environments.java import defer_collection, end_java, java_faults, require_java, tend
from heedful.environments.making import EnvironmentOptions
from heedful.errors import UsageError
from heedful.extras import importing
from heedful.types import EpisodeSide, Observation, Spec

GAMES = ("coin", "cookingworld", "twc", "mapreader", "arithmetic", "sorting", "simonsays", "peckingorder")
FOLDS = {"pool": "train", "fit": "dev", "test": "test"}
FIRST_SEED: dict[EpisodeSide, int] = {"pool": 0, "fit": 10_000, "test": 20_000}
"""Our seeds of a side start here; the games of a fold are numbered from its own first seed."""
EPISODES = 1_000
"""Episodes per side."""


class TextWorldSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which game, with which parameters of the package, such as `numLocations=5`."""

    game: str = "coin"
    parameters: str = ""


class TextWorldExpress:
    """One game; seeds below 10,000 are train games, then dev games, then test games from 20,000."""

    def __init__(self, settings: TextWorldSettings) -> None:
        if settings.game not in GAMES:
            raise UsageError(f"there is no game {settings.game!r}; choose one of {', '.join(GAMES)}")
        self._settings = settings
        self._world: Any = None
        self._folds: dict[EpisodeSide, Sequence[int]] = {}

    @property
    def spec(self) -> Spec:
        settings = self._settings
        name = "textworld_express"
        return {"environment": name, "game": settings.game, "parameters": settings.parameters}

    def seeds(self, side: EpisodeSide) -> Sequence[int]:
        return range(FIRST_SEED[side], FIRST_SEED[side] + EPISODES)

    def reset(self, seed: int) -> Observation:
        _, infos = self._reset(seed, gold=False)
        return self._observed(infos)

    def step(self, action: str) -> Observation:
        with java_faults("TextWorld-Express"):
            _, _, done, infos = self._running().step(action)
        return self._observed({**infos, "done": done})

    def gold(self, seed: int) -> Sequence[str]:
        """A solution; the package finds another one at each call."""
        world, _ = self._reset(seed, gold=True)
        with java_faults("TextWorld-Express"):
            return tuple(world.getGoldActionSequence())

    def close(self) -> None:
        world, self._world = self._world, None
        if world is not None:
            end_java(world)

    def _reset(self, seed: int, *, gold: bool) -> tuple[Any, dict[str, Any]]:
        side = next((side for side in FIRST_SEED if seed in self.seeds(side)), None)
        if side is None:
            raise UsageError(
                f"TextWorld-Express has no episode {seed}; its sides start at 0, 10000 and 20000 "
                f"and have {EPISODES} episodes each"
            )
        world = self._running()
        with java_faults("TextWorld-Express"):
            valid = self._fold(world, side)
            game_seed = valid[(seed - FIRST_SEED[side]) % len(valid)]
            _, infos = world.reset(seed=game_seed, gameFold=FOLDS[side], generateGoldPath=gold)
        return world, infos

    def _fold(self, world: Any, side: EpisodeSide) -> Sequence[int]:
        if side not in self._folds:
            seeds = {"pool": world.getValidSeedsTrain, "fit": world.getValidSeedsDev}
            self._folds[side] = seeds.get(side, world.getValidSeedsTest)()
        return self._folds[side]

    def _running(self) -> Any:
        if self._world is None:
            require_java()
            with importing("agents"):
                from textworld_express import TextWorldExpressEnv
            with java_faults("TextWorld-Express"):
                self._world = TextWorldExpressEnv(envStepLimit=1_000)
                defer_collection(self._world)
                self._world.load(self._settings.game, self._settings.parameters)
        tend(self._world, "TextWorld-Express")
        return self._world

    def _observed(self, infos: dict[str, Any]) -> Observation:
        if infos["observation"].startswith("ERROR:"):  # of parameters that the package cannot use
            raise UsageError(
                f"TextWorld-Express cannot play {self._settings.game} with the parameters "
                f"{self._settings.parameters!r}: {' '.join(infos['observation'].split())}"
            )
        return Observation(
            text=" ".join(infos["observation"].split()),
            actions=tuple(sorted(infos["validActions"])),
            score=min(1.0, max(0.0, infos["score"])),
            done=infos["done"],
            goal=" ".join(infos["taskDescription"].split()),
            kind=self._settings.game,
        )


def make_textworld_express(options: EnvironmentOptions) -> TextWorldExpress:
    return TextWorldExpress(options.read(TextWorldSettings, "textworld_express"))
