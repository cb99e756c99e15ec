"""A solved pool episode as turns of a conversation: every prompt of every arm begins with it."""

from collections.abc import Sequence
from itertools import islice

from heedful.agents.actions import shortlist
from heedful.agents.hints import pool_seeds
from heedful.agents.step_task import ActingSettings, step_question
from heedful.agents.trail import Trail
from heedful.ports import Environment, Teacher
from heedful.types import Message

LOOKED_AT = 30
"""Pool episodes among which a solution is chosen."""
EXAMPLE_STEPS = 6
"""Steps of an example, if nothing else is set."""
EXAMPLE_ACTIONS = 8
"""Valid actions in a turn of the example."""


def solved_example(
    environment: Environment, settings: ActingSettings, steps: int = EXAMPLE_STEPS
) -> tuple[Message, ...]:
    """The turns of a solution: the longest within `steps`, else the shortest; empty if there is none."""
    if not steps or not isinstance(environment, Teacher):
        return ()
    solutions = []
    for seed in islice(pool_seeds(environment), LOOKED_AT):
        path = tuple(environment.gold(seed))
        if path and _solves(environment, seed, path):
            solutions.append((seed, path))
    if not solutions:
        return ()
    short = [solution for solution in solutions if len(solution[1]) <= steps]
    seed, path = max(short, key=_length) if short else min(solutions, key=_length)
    return _turns(environment, seed, path, settings)


def _length(solution: tuple[int, Sequence[str]]) -> int:
    return len(solution[1])


def _solves(environment: Environment, seed: int, path: Sequence[str]) -> bool:
    now = environment.reset(seed)
    for action in path:
        now = environment.step(action)
    return now.done and now.score >= 1.0 - 1e-9


def _turns(
    environment: Environment, seed: int, path: Sequence[str], settings: ActingSettings
) -> tuple[Message, ...]:
    first = environment.reset(seed)
    trail = Trail(now=first, goal=first.goal or first.text)
    turns: list[Message] = []
    for action in path:
        if trail.now.done:  # a published solution may go on after the goal
            break
        likely = shortlist(trail.untried(), trail.goal, trail.now.text, EXAMPLE_ACTIONS, trail.last_action)
        shown = [valid for valid in trail.now.actions if valid in likely or valid == action]
        turns.append(Message(role="user", content=step_question(trail, settings, shown)))
        turns.append(Message(role="assistant", content=action))
        trail.move(action, environment.step(action))
    return tuple(turns)
