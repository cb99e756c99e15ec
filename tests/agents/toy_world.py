"""A toy world for tests: walk east to a room and open the box of the right colour there."""

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from heedful.models.scripted import Reply, ScriptedModel
from heedful.types import EpisodeSide, Observation, Prompt, Spec

SIDES: dict[EpisodeSide, range] = {"pool": range(100, 140), "fit": range(200, 220), "test": range(20)}
ACTIONS = ("go east", "go west", "open red box", "open blue box")


@dataclass
class BoxWorld:
    """Rooms in a row; the target and its colour come from the seed. It can be told to fail or to hang."""

    fails_at: int | None = None
    """The step at which it raises."""
    hangs: threading.Event | None = None
    """Waited for at each step."""
    closed: int = 0
    spec: Spec = field(default_factory=lambda: {"environment": "boxes"})
    _seed: int = 0
    _room: int = 0
    _steps: int = 0
    _score: float = 0.0
    _done: bool = False

    def seeds(self, side: EpisodeSide) -> Sequence[int]:
        return SIDES[side]

    @property
    def goal(self) -> str:
        return f"Open the {colour_of(self._seed)} box in room {room_of(self._seed)}."

    def reset(self, seed: int) -> Observation:
        self._seed, self._room, self._steps, self._score, self._done = seed, 0, 0, 0.0, False
        return self._seen()

    def step(self, action: str) -> Observation:
        if self.hangs is not None:
            self.hangs.wait()
        if self._steps == self.fails_at:
            raise RuntimeError("the world fell apart")
        self._steps += 1
        if action not in ACTIONS or self._done:
            return self._seen("Nothing happens. ")
        if action.startswith("go"):
            self._room = max(0, min(5, self._room + (1 if action == "go east" else -1)))
        else:
            right = action == f"open {colour_of(self._seed)} box" and self._room == room_of(self._seed)
            self._score, self._done = float(right), True
        return self._seen()

    def gold(self, seed: int) -> Sequence[str]:
        return (*["go east"] * room_of(seed), f"open {colour_of(seed)} box")

    def breaks(self, action: str) -> str | None:
        return "contract:room" if "box" in action and self._room != room_of(self._seed) else None

    def close(self) -> None:
        self.closed += 1
        if self.hangs is not None:
            self.hangs.set()

    def _seen(self, notice: str = "") -> Observation:
        return Observation(
            text=f"{notice}You are in room {self._room}.",
            actions=() if self._done else ACTIONS,
            score=self._score,
            done=self._done,
            goal=self.goal,
            kind="boxes",
        )


def colour_of(seed: int) -> str:
    return "blue" if seed % 2 else "red"


def room_of(seed: int) -> int:
    return 1 + seed % 3


def walker(prompt: Prompt) -> Reply:
    """Walks east surely and opens the red box unsurely; follows a note about a box more surely."""
    last = prompt.messages[-1].content
    target = int(re.findall(r"Goal: .* in room (\d)", last)[0])
    situation = last.partition("Situation: ")[2].partition("\n")[0]
    room = int(re.findall(r"You are in room (\d)", situation)[-1])
    if room < target:
        return ("go east", -0.05)
    told = re.findall(r"open (?:the )?(red|blue) box", last.partition("Notes from")[2].lower())
    return (f"open {told[0]} box", -0.2) if told else ("open red box", -0.9)


def scripted(script: Callable[[Prompt], Reply] = walker) -> ScriptedModel:
    return ScriptedModel(script=script)
