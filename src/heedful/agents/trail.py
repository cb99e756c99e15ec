"""The trail of an episode: past observations and actions, and the part of them that a prompt holds."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from heedful.types import Message, Observation

LOOP_STEPS = 8
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
    _start: int = 0
    """The first step that prompts hold."""

    def move(self, action: str, after: Observation) -> None:
        """Add an action and its observation."""
        effect = (after.text, after.score) != (self.now.text, self.now.score)
        self.steps.append(TrailStep(observation=self.now.text, action=action, effect=effect))
        self.now = after

    def messages(self, tokens: int, length: int) -> tuple[Message, ...]:
        """The last steps within a number of tokens, each observation cut to a length in characters.

        The window moves in large strides: between two moves, the conversation grows at its end only, and a
        server's prefix cache holds.
        """
        if self._size(length) > tokens:
            while self._start < len(self.steps) and self._size(length) > tokens / 2:
                self._start += 1
        return tuple(message for step in self.steps[self._start :] for message in _turn(step, length))

    def shorten(self) -> bool:
        """Drop the older half of the steps that prompts hold; whether there was anything to drop."""
        left = len(self.steps) - self._start
        self._start += (left + 1) // 2
        return left > 0

    def in_loop(self) -> bool:
        """Whether the last steps only repeat what was done before."""
        if len(self.steps) <= LOOP_STEPS:
            return False
        earlier = _pairs(self.steps[:-LOOP_STEPS])
        return _pairs(self.steps[-LOOP_STEPS:]) <= earlier

    def _size(self, length: int) -> float:
        steps = self.steps[self._start :]
        return sum(min(len(s.observation), length) + len(s.action) for s in steps) / CHARACTERS_PER_TOKEN


def cut(text: str, length: int) -> str:
    """A text without what exceeds a length."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _turn(step: TrailStep, length: int) -> tuple[Message, Message]:
    return (
        Message(role="user", content=cut(step.observation, length)),
        Message(role="assistant", content=step.action),
    )


def _pairs(steps: Sequence[TrailStep]) -> set[tuple[str, str]]:
    return {(step.observation, step.action) for step in steps}
