"""The prompt of a step: goal, past steps, observation and valid actions."""

from dataclasses import dataclass

from heedful.agents.actions import REPLY_PATTERN, shortlist
from heedful.agents.trail import Trail, cut
from heedful.types import Task

INSTRUCTIONS = (
    "You act in a text world to reach a goal. In each turn you see the situation and the valid actions. "
    "Reply with exactly one of the valid actions, written as in the list, and nothing else. "
    "Where a valid action ends with [...], replace the dots with words of your own.\n\nGoal: {goal}"
)
QUESTION = "{observation}\n\nValid actions:\n{actions}\n\nReply with the next action."


@dataclass(frozen=True, slots=True, kw_only=True)
class ActingSettings:
    """How an agent is asked and how long it may act."""

    steps: int = 20
    """Maximum number of steps of an episode."""
    history_tokens: int = 1000
    """Past observations and actions in a prompt, in tokens (estimated)."""
    observation_length: int = 1600
    """Characters of the current observation in a prompt."""
    past_length: int = 400
    """Characters of each past observation in a prompt."""
    shown_actions: int = 30
    """Valid actions in a prompt; of more, the likeliest are chosen by their words."""
    max_tokens: int = 64
    """Maximum length of a reply in tokens."""
    world_patience: float = 60.0
    """Seconds that the environment may take for one step."""


def step_task(trail: Trail, settings: ActingSettings, id: str) -> Task:
    """The task of the current step.

    The list of actions is at the end and is not repeated for past steps, and a past observation is a
    beginning of what it was. So the prompt of the next step begins with this one up to that cut.
    """
    now = trail.now
    shown = shortlist(now.actions, trail.goal, now.text, settings.shown_actions)
    observation = cut(now.text, settings.observation_length)
    actions = "\n".join(f"- {action}" for action in shown) or "- any"
    return Task(
        id=id,
        question=QUESTION.format(observation=observation, actions=actions),
        instructions=INSTRUCTIONS.format(goal=trail.goal),
        answer_pattern=REPLY_PATTERN,
        max_tokens=settings.max_tokens,
        earlier=trail.messages(settings.history_tokens, settings.past_length),
        query=f"{trail.goal}\n{observation}",
    )
