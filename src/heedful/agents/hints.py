"""Build memory for agents from pool episodes: fragments of solutions, and how failures could be avoided."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

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
SITUATION_LENGTH = 400
"""Characters of the observation in an entry."""
SUBJECT_WORDS = "the item that fits"
"""Stands for the subject of another goal, which would mislead."""
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
    """The steps of a solution; empty if it does not lead to the goal."""
    if not isinstance(environment, Teacher):
        raise UsageError("the environment has no method gold(seed), so no memory can be built from solutions")
    path = tuple(environment.gold(seed))
    now = environment.reset(seed)
    steps = []
    for at, action in enumerate(path):
        steps.append(GoldStep(before=now, actions=path[at:]))
        now = environment.step(action)
        if now.done:
            break
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
        _entry(step.before, f"What worked: {_joined(step.before, step.actions[:FRAGMENT])}.", GOLD, seed)
        for step in steps[::stride]
    ]


def failure_entries(
    environment: Environment, episodes: Sequence[EpisodeRecord], limit: int
) -> Iterator[Entry]:
    """For failed episodes: the first step that left the solution, and what would have worked there."""
    failed = [episode for episode in episodes if not episode.success and not episode.failed]
    for episode in failed[:limit]:
        steps = gold_steps(environment, episode.seed)
        for gold, step in zip(steps, episode.steps, strict=False):
            if step.action != gold.actions[0]:
                better = _joined(gold.before, gold.actions[:FRAGMENT])
                advice = f"Here {cut(step.action, 80)!r} did not lead to the goal; what works: {better}."
                yield _entry(gold.before, advice, FAILURE, episode.seed)
                break


def _entry(before: Observation, advice: str, source: str, seed: int) -> Entry:
    situation = f"{before.goal}\n{cut(before.text, SITUATION_LENGTH)}"
    tags = (before.kind,) if before.kind else ()
    return new_entry(situation, kind="hint", response=advice, tags=tags, source=f"{source}:{seed}")


def _joined(before: Observation, actions: Sequence[str]) -> str:
    subject = before.subject.lower()
    spoken = [a.replace(subject, SUBJECT_WORDS) if subject and subject in a else a for a in actions]
    return ", then ".join(spoken)


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
