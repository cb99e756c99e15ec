"""Build memory for agents from pool episodes: fragments of solutions, and how failures could be avoided."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from heedful.agents.episode_record import EpisodeRecord
from heedful.agents.trail import cut
from heedful.errors import LeakError, UsageError
from heedful.memory.entries import new_entry
from heedful.ports import Environment, Teacher
from heedful.types import Entry, EpisodeSide, Observation

FRAGMENT = 3
"""Actions in a fragment."""
SHORT = 8
"""Steps of a short solution."""
SITUATION_LENGTH = 160
"""Characters of the observation in an entry."""
SUBJECT_WORDS = "(the one that fits the goal best)"
"""Stands for an action about the subject of another goal."""
GOAL_WORDS = "the words of your goal"
"""Stands for text in an action that repeats the words of another goal."""
GOLD, FAILURE = "gold", "failure"
ASKED_SIDES: tuple[EpisodeSide, ...] = ("fit", "test")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldStep:
    """A situation on the way of a solution, and the actions that follow."""

    before: Observation
    actions: tuple[str, ...]


def pool_seeds(environment: Environment) -> list[int]:
    """Pool episodes about subjects that neither the fit side nor the test side has."""
    asked = set()
    for side in ASKED_SIDES:
        asked |= subjects(environment, environment.seeds(side))
    if not asked:
        return list(environment.seeds("pool"))
    return [seed for seed in environment.seeds("pool") if environment.reset(seed).subject not in asked]


def subjects(environment: Environment, seeds: Sequence[int]) -> set[str]:
    """The subjects of episodes; environments without subjects have none."""
    if not seeds or not environment.reset(seeds[0]).subject:
        return set()
    return {environment.reset(seed).subject for seed in seeds}


def gold_steps(environment: Environment, seed: int) -> list[GoldStep]:
    """The steps of a solution that change anything; empty if it does not lead to the goal."""
    if not isinstance(environment, Teacher):
        raise UsageError("the environment has no method gold(seed), so no memory can be built from solutions")
    path = tuple(environment.gold(seed))
    now = environment.reset(seed)
    useful = []
    for action in path:
        before, now = now, environment.step(action)
        if now.done or (now.text, now.score) != (before.text, before.score):
            useful.append((before, action))
        if now.done:
            break
    actions = tuple(action for _, action in useful)
    steps = [GoldStep(before=before, actions=actions[at:]) for at, (before, _) in enumerate(useful)]
    return steps if now.score > 0 else []


def gold_entries(environment: Environment, seeds: Iterable[int], limit: int) -> list[Entry]:
    """Fragments of solutions, episode by episode, until there are `limit`."""
    distinct: dict[str, Entry] = {}
    for seed in seeds:
        if len(distinct) >= limit:
            break
        for entry in fragments(gold_steps(environment, seed), seed):
            distinct.setdefault(entry.id, entry)
    return list(distinct.values())[:limit]


def fragments(steps: Sequence[GoldStep], seed: int) -> list[Entry]:
    """One entry for every step of a short solution, for every third step of a long one."""
    stride = 1 if len(steps) <= SHORT else FRAGMENT
    return [
        _entry(step.before, _advice(step.before, step.actions[:FRAGMENT]), GOLD, seed)
        for step in steps[::stride]
    ]


class FailedStep(msgspec.Struct, frozen=True):
    """The step at which a played episode left the solution; with it an entry is built without playing."""

    seed: int
    step: int
    action: str


def failed_steps(environment: Environment, episodes: Sequence[EpisodeRecord]) -> Iterator[FailedStep]:
    """The first step of each failed episode that left the solution."""
    for episode in episodes:
        if episode.success or episode.failed:
            continue
        steps = gold_steps(environment, episode.seed)
        for at, (gold, step) in enumerate(zip(steps, episode.steps, strict=False)):
            if step.action != gold.actions[0]:
                yield FailedStep(episode.seed, at, step.action)
                break


def failure_entry(environment: Environment, failed: FailedStep) -> Entry:
    """What would have worked at a step that left the solution."""
    steps = gold_steps(environment, failed.seed)
    if failed.step >= len(steps):
        raise UsageError(f"the solution of episode {failed.seed} has no step {failed.step}")
    gold = steps[failed.step]
    advice = _advice(gold.before, gold.actions[:FRAGMENT])
    not_this = f"Did not lead to the goal: {cut(failed.action, 80)}"
    return _entry(gold.before, f"{advice}\n{not_this}", FAILURE, failed.seed)


def _entry(before: Observation, advice: str, source: str, seed: int) -> Entry:
    situation = f"{before.goal}\n{cut(before.text, SITUATION_LENGTH)}"
    tags = (before.kind,) if before.kind else ()
    return new_entry(situation, kind="hint", response=advice, tags=tags, source=f"{source}:{seed}")


def _advice(before: Observation, actions: Sequence[str]) -> str:
    """The next action on a line of its own, because a small model copies the line; then those after it."""
    first, *later = [_general(action, before) for action in actions]
    return "\n".join((f"Next action: {first}", *([f"After that: {', '.join(later)}"] if later else [])))


def _general(action: str, before: Observation) -> str:
    """An action as advice under another goal.

    The subject of this goal and the words that the action takes from it would mislead there, so words stand
    for them: `click[black]` is `click[(the color that your goal names)]` if the goal says `color: black`.
    """
    subject = before.subject.lower()
    if subject and subject in action:
        return SUBJECT_WORDS
    verb, bracket, rest = action.partition("[")
    said = " ".join(rest.removesuffix("]").split())
    if not bracket or not said or said.casefold() not in before.goal.casefold():
        return action
    role = re.search(rf"([\w-]+(?: [\w-]+)?): {re.escape(said)}(?:,|$)", before.goal, re.IGNORECASE)
    name = role[1].removeprefix("and ").removeprefix("with ") if role else ""
    return f"{verb}[({f'the {name} that your goal names' if name else GOAL_WORDS})]"


def refuse_leaks(
    entries: Sequence[Entry], environment: Environment, asked: Mapping[EpisodeSide, Sequence[int]]
) -> None:
    """Raise `LeakError` if an entry was built from an episode, or a subject, that the study plays."""
    played = {seed for seeds in asked.values() for seed in seeds}
    known = {subject for seeds in asked.values() for subject in subjects(environment, seeds)}
    leaks = [entry.id for entry in entries if _leaks(entry, environment, played, known)]
    if leaks:
        raise LeakError(
            f"the bank contains entries about episodes that the study plays ({', '.join(leaks[:5])}): "
            "build it from pool episodes with heedful agent hints"
        )


def _leaks(entry: Entry, environment: Environment, played: set[int], known: set[str]) -> bool:
    source, _, number = entry.source.partition(":")
    if source not in (GOLD, FAILURE) or not number.isdigit():
        return False
    return int(number) in played or (bool(known) and environment.reset(int(number)).subject in known)


def scoped(entries: Sequence[Entry]) -> Callable[[str], list[Entry]]:
    """The entries for a type of goal: its own, and those without a type."""
    return lambda kind: [entry for entry in entries if not entry.tags or kind in entry.tags or not kind]
