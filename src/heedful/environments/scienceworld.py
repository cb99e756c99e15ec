"""ScienceWorld (Wang et al. 2022): school experiments in text, in a Java process."""

from collections.abc import Sequence
from typing import Any

import msgspec

from heedful.environments.java import defer_collection, end_java, java_faults, require_java, tend
from heedful.environments.making import EnvironmentOptions
from heedful.errors import UsageError
from heedful.extras import importing
from heedful.types import EpisodeSide, Observation, Spec

PER_TASK = 10_000
"""A seed is 10,000 × the place of the task among the package's tasks + the variation."""
FOCUS = "focus on "
NAMED_FOCUS = (
    *("boil", "melt", "freeze", "change-the-state", "chemistry-mix", "measure-", "use-thermometer"),
    *("power-component", "test-conductivity"),
)
"""Beginnings of tasks whose goal names what to focus on; the goals of other tasks only describe it."""


NOT_OFFERED = frozenset({"reset task", "task"})
"""Actions of the package that do not belong to the experiment: the goal is always shown."""
LOOK = "look around"
OPEN = "open door to "
OPEN_DOORS = ("easy", "openDoors")
"""Simplifications in which all doors are open."""


class ScienceWorldSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which tasks, separated by commas (empty: all), and how simple."""

    tasks: str = ""
    simplification: str = "easy"


class ScienceWorld:
    """The tasks of the package with their published train, dev and test variations.

    The package's own `step` also lists everything; this one calls the Java side directly. An observation
    ends with the description of the room, which takes no time in the world.
    A negative score, which the package gives for focusing on a wrong object, ends the episode and counts
    as 0.
    """

    def __init__(self, settings: ScienceWorldSettings) -> None:
        self._settings = settings
        self._world: Any = None
        self._goal = self._task = ""
        self._variations: dict[str, dict[EpisodeSide, list[int]]] = {}

    @property
    def spec(self) -> Spec:
        settings = self._settings
        return {
            "environment": "scienceworld",
            "tasks": settings.tasks,
            "simplification": settings.simplification,
        }

    def seeds(self, side: EpisodeSide) -> Sequence[int]:
        """Variation by variation over all tasks, so that the first few episodes have every task."""
        numbered = []
        for place, task in self._tasks():
            variations = enumerate(self._sides_of(task)[side])
            numbered += [(at, PER_TASK * place + variation) for at, variation in variations]
        return [seed for _, seed in sorted(numbered)]

    def _sides_of(self, task: str) -> dict[EpisodeSide, list[int]]:
        """The variations of a task by side; the package tells them only for the task that is loaded."""
        if task not in self._variations:
            world = self._running()
            with java_faults("ScienceWorld"):
                world.load(task, 0, self._settings.simplification)
                self._variations[task] = {
                    "pool": sorted(world.get_variations_train()),
                    "fit": sorted(world.get_variations_dev()),
                    "test": sorted(world.get_variations_test()),
                }
        return self._variations[task]

    def reset(self, seed: int) -> Observation:
        world = self._load(seed, gold=False)
        with java_faults("ScienceWorld"):
            world.server.reset()
            world.server.step(LOOK)  # before the first step the Java side lists no valid action
            return self._observed(world, "")

    def step(self, action: str) -> Observation:
        world = self._running()
        with java_faults("ScienceWorld"):
            return self._observed(world, world.server.step(action))

    def gold(self, seed: int) -> Sequence[str]:
        world = self._load(seed, gold=True)
        with java_faults("ScienceWorld"):
            path = world.get_gold_action_sequence()
        return tuple(action for action in path if not self._is_idle(action))

    def _is_idle(self, action: str) -> bool:
        """Whether an action changes nothing: the room is in sight, and its doors may be open already."""
        doors_are_open = any(name in self._settings.simplification for name in OPEN_DOORS)
        return action == LOOK or (doors_are_open and action.startswith(OPEN))

    def breaks(self, action: str) -> str | None:
        """Refuse to focus on something that the goal does not name: a wrong focus ends the episode."""
        words = action.strip().lower()
        if not words.startswith(FOCUS) or not self._task.startswith(NAMED_FOCUS):
            return None
        named = [word for word in words.removeprefix(FOCUS).split() if len(word) > 2]
        goal = self._goal.lower()
        return None if any(word in goal for word in named) else "contract:focus"

    def close(self) -> None:
        world, self._world = self._world, None
        if world is not None:
            end_java(world)

    def _load(self, seed: int, *, gold: bool) -> Any:
        place, variation = divmod(seed, PER_TASK)
        tasks = dict(self._tasks())
        if place not in tasks:
            raise UsageError(f"ScienceWorld has no episode {seed} with these tasks")
        self._task, world = tasks[place], self._running()
        with java_faults("ScienceWorld"):
            if variation >= world.get_max_variations(self._task):
                raise UsageError(f"the task {self._task} of ScienceWorld has no variation {variation}")
            world.load(self._task, variation, self._settings.simplification, generateGoldPath=gold)
            self._goal = " ".join(world.get_task_description().removeprefix("Task Description:").split())
        return world

    def _tasks(self) -> list[tuple[int, str]]:
        with importing("agents"):
            from scienceworld.constants import ID2TASK
        known = list(ID2TASK.values())
        wanted = [name.strip() for name in self._settings.tasks.split(",") if name.strip()] or known
        if unknown := [name for name in wanted if name not in known]:
            raise UsageError(
                f"ScienceWorld has no task {', '.join(map(repr, unknown))}; choose from {', '.join(known)}"
            )
        return [(known.index(name), name) for name in wanted]

    def _running(self) -> Any:
        if self._world is None:
            require_java()
            with importing("agents"):
                from scienceworld import ScienceWorldEnv
            with java_faults("ScienceWorld"):
                self._world = ScienceWorldEnv(envStepLimit=1_000_000)
                defer_collection(self._world)
        tend(self._world, "ScienceWorld")
        return self._world

    def _observed(self, world: Any, text: str) -> Observation:
        score = float(world.server.getScore())
        done = bool(world.server.getCompleted()) or score < 0
        valid = () if done else world.server.getValidActionObjectCombinations()
        return Observation(
            text=" ".join(f"{text} {world.server.freeActionLook()}".split()),
            actions=tuple(action for action in valid if action not in NOT_OFFERED),
            score=min(1.0, max(0.0, score)),
            done=done,
            goal=self._goal,
            kind=self._task,
        )


def make_scienceworld(options: EnvironmentOptions) -> ScienceWorld:
    return ScienceWorld(options.read(ScienceWorldSettings, "scienceworld"))
