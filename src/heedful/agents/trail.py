"""The trail of an episode: past observations and actions, and the part of them that a prompt holds."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from heedful.agents.actions import ANY_TEXT
from heedful.types import Observation

LOOP_STEPS = 4
"""An episode is in a loop if this many steps in a row repeat earlier ones."""
CHARACTERS_PER_TOKEN = 3.5
"""An estimate; a prompt that is too long nevertheless is shortened when the endpoint refuses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailStep:
    """An action and the observation before it."""

    observation: str
    action: str
    effect: bool = True
    """Whether the observation or the score changed."""


@dataclass(slots=True, kw_only=True)
class Trail:
    """What an agent did so far, and where it is now."""

    now: Observation
    goal: str
    steps: list[TrailStep] = field(default_factory=list)
    takes_text: bool = field(init=False)
    """Whether an action that was valid so far takes words of the agent's own."""
    _start: int = 0
    """The first step that prompts hold."""

    def __post_init__(self) -> None:
        self.takes_text = _takes_text(self.now)

    @property
    def last_action(self) -> str:
        return self.steps[-1].action if self.steps else ""

    def move(self, action: str, after: Observation) -> None:
        """Add an action and its observation."""
        effect = (after.text, after.score) != (self.now.text, self.now.score)
        self.steps.append(TrailStep(observation=self.now.text, action=action, effect=effect))
        self.now = after
        self.takes_text = self.takes_text or _takes_text(after)

    def history(self, tokens: int, length: int) -> tuple[str, ...]:
        """The last actions within a number of tokens, each with what followed, cut to a length in characters.

        The window moves in large strides: between two moves, the history grows at its end only, and a
        server's prefix cache holds. What followed the last action is the current observation.
        """
        lines = [
            f"{number}. {step.action} -> {cut(_one_line(after.observation), length)}"
            for number, (step, after) in enumerate(pairwise(self.steps), 1)
        ]
        lines += [f"{len(self.steps)}. {step.action}" for step in self.steps[-1:]]
        if _tokens(lines[self._start :]) > tokens:
            while self._start < len(lines) and _tokens(lines[self._start :]) > tokens / 2:
                self._start += 1
        return tuple(lines[self._start :])

    def shorten(self) -> bool:
        """Drop the older half of the steps that prompts hold; whether there was anything to drop."""
        left = len(self.steps) - self._start
        self._start += (left + 1) // 2
        return left > 0

    def untried(self) -> tuple[str, ...]:
        """The valid actions that were not executed at this same observation before; all, if all were."""
        tried = {step.action for step in self.steps if step.observation == self.now.text}
        return tuple(action for action in self.now.actions if action not in tried) or self.now.actions

    def in_loop(self) -> bool:
        """Whether the last steps only repeat what was done before."""
        if len(self.steps) <= LOOP_STEPS:
            return False
        earlier = _pairs(self.steps[:-LOOP_STEPS])
        return _pairs(self.steps[-LOOP_STEPS:]) <= earlier


def cut(text: str, length: int) -> str:
    """A text without what exceeds a length."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _takes_text(observation: Observation) -> bool:
    return any(action.endswith(ANY_TEXT) for action in observation.actions)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _tokens(lines: Sequence[str]) -> float:
    return sum(len(line) + 1 for line in lines) / CHARACTERS_PER_TOKEN


def _pairs(steps: Sequence[TrailStep]) -> set[tuple[str, str]]:
    return {(step.observation, step.action) for step in steps}
