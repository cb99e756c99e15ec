"""The prompt of a step: goal, past actions, observation and valid actions, after a solved example."""

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.agents.actions import REPLY_PATTERN, shortlist
from heedful.agents.trail import Trail, cut
from heedful.types import Message, Task

INSTRUCTIONS = (
    "You act in a text world to reach a goal. In each turn you see the goal, what you have done, the "
    "situation and the valid actions. Reply with one valid action and nothing else."
)
OWN_WORDS = " Where a valid action ends with [...], replace the dots with words of your own."
"""Added where such actions occur; in other worlds a small model would write the brackets too."""
QUESTION = "Goal: {goal}\nDone so far:\n{history}\n\nSituation: {observation}\nValid actions:\n{actions}"
NOTHING_DONE = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActingSettings:
    """How an agent is asked and how long it may act."""

    steps: int = 20
    """Maximum number of steps of an episode."""
    history_tokens: int = 400
    """Past actions and what followed them in a prompt, in tokens (estimated)."""
    observation_length: int = 1600
    """Characters of the current observation in a prompt."""
    past_length: int = 80
    """Characters of what followed each past action in a prompt."""
    shown_actions: int = 30
    """Valid actions in a prompt; of more, the likeliest are chosen by their words."""
    max_tokens: int = 64
    """Maximum length of a reply in tokens."""
    world_patience: float = 60.0
    """Seconds that the environment may take for one step."""


def step_task(trail: Trail, settings: ActingSettings, id: str, example: Sequence[Message] = ()) -> Task:
    """The task of the current step; `example` holds the turns of a solved episode.

    The list leaves out actions that were tried at this same observation: a small model repeats them until
    the episode ends. What changes comes last: the example and the rules are read once, and the goal and the
    past actions of a step are read again only from the last action on.
    """
    shown = shortlist(trail.untried(), trail.goal, trail.now.text, settings.shown_actions, trail.last_action)
    return Task(
        id=id,
        question=step_question(trail, settings, shown),
        instructions=INSTRUCTIONS + OWN_WORDS if trail.takes_text else INSTRUCTIONS,
        answer_pattern=REPLY_PATTERN,
        max_tokens=settings.max_tokens,
        earlier=tuple(example),
        query=f"{trail.goal}\n{cut(trail.now.text, settings.observation_length)}",
    )


def step_question(trail: Trail, settings: ActingSettings, shown: Sequence[str]) -> str:
    """The situation in words, with these valid actions."""
    history = trail.history(settings.history_tokens, settings.past_length)
    return QUESTION.format(
        goal=trail.goal,
        history="\n".join(history) or NOTHING_DONE,
        observation=cut(trail.now.text, settings.observation_length),
        actions="\n".join(f"- {action}" for action in shown) or "- any",
    )
