"""One episode for a reader: its steps in words, its branches, and memory built from episodes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from heedful import arms
from heedful.agents.agent_fit import branch_jobs
from heedful.agents.decode_cache import CachedModel
from heedful.agents.episode_record import EpisodeRecord
from heedful.agents.hints import FailedStep, failed_steps, failure_entry, gold_entries, pool_seeds
from heedful.agents.play import Arm, Player, SourcesOf, StepView
from heedful.agents.step_task import ActingSettings
from heedful.agents.trail import cut
from heedful.agents.world_worker import WorldWorker, watched
from heedful.errors import ModelError, UsageError
from heedful.memory.formats import write_entries
from heedful.ports import Environment, Model
from heedful.protocol.workspace import write_text
from heedful.types import Entry, EpisodeSide, Message, Policy

SEEN_LENGTH = 300
"""Characters of an observation that are printed."""
BRANCHES = 5
HINT_PATIENCE = 1800.0
"""Seconds that an environment may take for the solutions of its pool episodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRun:
    """What one episode is played with."""

    world: Environment
    model: Model
    arm: str
    policy: Policy
    sources: SourcesOf
    settings: ActingSettings
    example: tuple[Message, ...] = ()
    branch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedRun:
    """A played episode and its branches."""

    record: EpisodeRecord
    branches: tuple[EpisodeRecord, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    """As JSON."""
    lines: tuple[str, ...] = ()


async def play_once(run: EpisodeRun, seed: int, watch: Callable[[StepView], None]) -> PlayedRun:
    """Play an episode, and finish it both ways where memory proposed another action if asked to."""
    cached = CachedModel(model=run.model)
    quiet = Player(model=cached, settings=run.settings, example=run.example)
    player = replace(quiet, sources=run.sources, watch=watch)
    worker = WorldWorker(lambda: run.world, run.settings.world_patience)
    record = await player.play(worker, side_of(run.world, seed), seed, Arm(name=run.arm, policy=run.policy))
    branches = []
    if run.branch:
        for job in branch_jobs(record, BRANCHES):
            own = (*job.script[:-1], record.steps[len(job.script) - 1].first_action)
            for script in (own, job.script):
                branches.append(await quiet.play(worker, job.side, seed, job.arm, script))
    fields = {**run_fields(record), "saved": cached.saved, "branches": branch_fields(branches)}
    lines = (end_line(record), *(f"branch: {line}" for line in _branch_lines(branches)))
    return PlayedRun(record=record, branches=tuple(branches), fields=fields, lines=lines)


def side_of(world: Environment, seed: int) -> EpisodeSide:
    """The side of an episode."""
    sides: tuple[EpisodeSide, ...] = ("pool", "fit", "test")
    for side in sides:
        if seed in world.seeds(side):
            return side
    listed = ", ".join(f"{side}: {_shown(world.seeds(side))}" for side in sides)
    raise UsageError(f"the environment has no episode {seed}; its episodes are {listed}")


def _shown(seeds: Sequence[int]) -> str:
    """The first and the last of many numbers."""
    return "none" if not seeds else f"{seeds[0]} … {seeds[-1]} ({len(seeds)})"


def step_lines(step: StepView) -> list[str]:
    """A step in words: observation, first action, what was recalled, second action, verdict."""
    outcome, record, route = step.outcome, step.record, step.outcome.route
    sure = "unknown" if outcome.confidence is None else f"{outcome.confidence:.3f}"
    goal = [f"goal: {step.observation.goal}"] if step.number == 1 and step.observation.goal else []
    lines = [
        *goal,
        f"{step.number}  {cut(step.observation.text, SEEN_LENGTH)}",
        f"   first   {record.first_action}  (confidence {sure}: {route.choice}, {route.reason})",
    ]
    for candidate in outcome.candidates:
        attempt = candidate.attempt
        for recall in attempt.recalls:
            lines.append(f"           {recall.score:.2f} {recall.entry.id}: {cut(_told(recall.entry), 160)}")
        sure = "" if candidate.confidence is None else f"  (confidence {candidate.confidence:.3f})"
        lines.append(f"   {attempt.source:7} {attempt.decode.answer or attempt.status}{sure}")
        lines.append(f"   verdict {candidate.verdict.choice} ({candidate.verdict.reason})")
    mark = "" if record.valid else "  (not a valid action)"
    return [*lines, f"   →       {record.action}{mark}  score {record.score:.2f}"]


def _told(entry: Entry) -> str:
    """The advice of an entry; its situation is the one at hand, more or less."""
    return (entry.response or entry.text).replace("\n", " ")


def end_line(record: EpisodeRecord) -> str:
    error = f" ({record.error})" if record.error else ""
    counts = f"{len(record.steps)} steps, {record.calls} calls"
    return f"ended: {record.end}{error}, score {record.score:.2f}, {counts}"


def run_fields(record: EpisodeRecord) -> dict[str, Any]:
    """The stable fields of a played episode."""
    steps = [
        {
            "first": step.first_action,
            "confidence": step.confidence,
            "route": step.route.reason,
            "recalls": [recall.entry for c in step.candidates for recall in c.record.recalls],
            "second": step.second_action,
            "verdict": None if step.verdict is None else step.verdict.choice,
            "reason": None if step.verdict is None else step.verdict.reason,
            "action": step.action,
            "valid": step.valid,
            "score": step.score,
        }
        for step in record.steps
    ]
    ending = {"end": record.end, "error": record.error}
    return {"goal": record.seed, "score": record.score, "calls": record.calls, **ending, "steps": steps}


def branch_fields(branches: list[EpisodeRecord]) -> list[dict[str, Any]]:
    """Pairs of continuations: the first pass's action and memory's."""
    pairs = zip(branches[::2], branches[1::2], strict=True)
    return [
        {"step": len(own.script), "first": own.script[-1], "second": other.script[-1]}
        | {"first_score": own.score, "second_score": other.score}
        for own, other in pairs
    ]


def _branch_lines(branches: list[EpisodeRecord]) -> list[str]:
    return [
        f"step {pair['step']}: {pair['first']} → {pair['first_score']:.2f}, "
        f"{pair['second']} → {pair['second_score']:.2f}"
        for pair in branch_fields(branches)
    ]


async def write_hints(
    world: Environment,
    out: Path,
    limit: int,
    failures: int,
    player: Player | None,
    tell: Callable[[str], object] = lambda line: None,
    known: Sequence[FailedStep] = (),
) -> dict[str, int]:
    """Build entries from pool episodes and write them to a file; the number of entries.

    With a player, the first `failures` pool episodes are played, and the steps that left the solution are
    written beside the entries; `tell` gets a line after each. `known` holds such steps of an earlier run.
    """
    seeds = await watched(lambda: pool_seeds(world), "the list of pool episodes", HINT_PATIENCE)
    episodes: list[EpisodeRecord] = []
    if player is not None:
        worker = WorldWorker(lambda: world, player.settings.world_patience)
        arm = Arm(name="no memory", policy=arms.never())
        for number, seed in enumerate(seeds[:failures], 1):
            episodes.append(await player.play(worker, "pool", seed, arm))
            tell(f"episode {number} of {min(failures, len(seeds))}: {end_line(episodes[-1])}")
        if episodes and all(episode.failed for episode in episodes):
            raise ModelError(f"every pool episode failed, the last one with: {episodes[-1].error}")

    def build() -> tuple[list[FailedStep], list[Entry], list[Entry]]:
        steps = list(dict.fromkeys((*known, *failed_steps(world, episodes))))[:limit]
        failed = [failure_entry(world, step) for step in steps]
        return steps, failed, gold_entries(world, seeds, max(0, limit - len(failed)))

    steps, failed, gold = await watched(build, "the search for solutions", HINT_PATIENCE)
    if episodes:
        lines = "".join(f"{msgspec.json.encode(step).decode()}\n" for step in steps)
        write_text(out.with_suffix(".failed.jsonl"), lines)
    entries = {entry.id: entry for entry in (*failed, *gold)}
    write_text(out, write_entries(list(entries.values()), "jsonl"))
    return {"entries": len(entries), "failures": len(failed)}
