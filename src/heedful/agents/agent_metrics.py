"""The results of an agent study: every arm against no memory on the same episodes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from heedful.agents.episode_record import EpisodeRecord
from heedful.errors import UsageError
from heedful.stats.bootstrap import paired_interval
from heedful.stats.intervals import Interval

BASELINE = "no memory"
WORST = 0.1
"""The share of episodes in the lower tail."""
SAME_SCORE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmResult:
    """An arm over all episodes; counts of steps are per episode."""

    name: str
    episodes: int
    success: float
    score: float
    calls: float
    helps: int
    """Episodes that end with a higher score than their paired episode without memory."""
    hurts: int
    har: float | None
    """Harmful acceptance rate: accepted steps in hurt episodes ÷ accepted steps; None: nothing accepted."""
    ltr: float
    """Lower tail: mean of the worst 10% of paired score differences."""
    tr: float | None
    """Of the episodes that failed or had an invalid step without memory, the share with a higher score."""
    routed: float
    accepted: float
    invalid: float
    steps: float
    tokens_read: float
    """Prompt tokens per call that were not in the prefix cache."""
    reasons: Mapping[str, int]
    """How often each reason refused a second action."""
    ends: Mapping[str, int]
    delta: Mapping[str, Interval]
    """Paired differences of success, score and calls to no memory, with 95% intervals."""


def pair_episodes(records: Sequence[EpisodeRecord], arms: Sequence[str]) -> dict[str, list[EpisodeRecord]]:
    """Episodes by arm, in one order, of the seeds that every arm has played without a failure."""
    sound: dict[str, dict[int, EpisodeRecord]] = {arm: {} for arm in arms}
    for record in records:
        if not record.failed:
            sound[record.arm][record.seed] = record
    seeds = sorted(set.intersection(*(set(played) for played in sound.values())))
    if not seeds:
        raise UsageError("no test episode has been played by every arm yet; run heedful agent study")
    return {arm: [played[seed] for seed in seeds] for arm, played in sound.items()}


def arm_results(episodes: Mapping[str, Sequence[EpisodeRecord]], seed: int) -> dict[str, ArmResult]:
    """The result of each arm; `seed` is that of the bootstrap."""
    return {name: _result(name, played, episodes[BASELINE], seed) for name, played in episodes.items()}


def _result(
    name: str, played: Sequence[EpisodeRecord], baseline: Sequence[EpisodeRecord], seed: int
) -> ArmResult:
    pairs = list(zip(baseline, played, strict=True))
    differences = [after.score - before.score for before, after in pairs]
    hurt = [difference < -SAME_SCORE for difference in differences]
    accepted = [record.accepted for record in played]
    steps = [step for record in played for step in record.steps]
    calls = sum(step.calls for step in steps)
    read = sum(step.usage.prompt_tokens - step.usage.cached_tokens for step in steps)
    return ArmResult(
        name=name,
        episodes=len(played),
        success=_mean([record.success for record in played]),
        score=_mean([record.score for record in played]),
        calls=_mean([record.calls for record in played]),
        helps=sum(difference > SAME_SCORE for difference in differences),
        hurts=sum(hurt),
        har=_share(sum(a for a, worse in zip(accepted, hurt, strict=True) if worse), sum(accepted)),
        ltr=_lower_tail(differences),
        tr=_troubled(pairs),
        routed=_mean([record.routed for record in played]),
        accepted=_mean(accepted),
        invalid=_mean([record.invalid for record in played]),
        steps=len(steps) / len(played),
        tokens_read=read / calls if calls else 0.0,
        reasons=refusals(played),
        ends=dict(Counter(record.end for record in played).most_common()),
        delta=_deltas(pairs, seed),
    )


def _deltas(pairs: Sequence[tuple[EpisodeRecord, EpisodeRecord]], seed: int) -> dict[str, Interval]:
    measures = {
        "success": [float(after.success) - float(before.success) for before, after in pairs],
        "score": [after.score - before.score for before, after in pairs],
        "calls": [float(after.calls - before.calls) for before, after in pairs],
    }
    groups = [str(before.seed) for before, _ in pairs]
    rng = np.random.default_rng([seed, 17])
    return {name: paired_interval(values, groups, rng) for name, values in measures.items()}


def refusals(played: Sequence[EpisodeRecord]) -> dict[str, int]:
    """Reasons of the second actions that were not taken, most frequent first."""
    verdicts = (
        candidate.verdict for record in played for step in record.steps for candidate in step.candidates
    )
    return dict(Counter(verdict.reason for verdict in verdicts if verdict.choice == "rollback").most_common())


def _lower_tail(differences: Sequence[float]) -> float:
    return _mean(sorted(differences)[: ceil(WORST * len(differences))])


def _troubled(pairs: Sequence[tuple[EpisodeRecord, EpisodeRecord]]) -> float | None:
    troubled = [(before, after) for before, after in pairs if not before.success or before.invalid]
    return _share(sum(after.score > before.score + SAME_SCORE for before, after in troubled), len(troubled))


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryResult:
    """What became of the episodes in which an entry was in an accepted prompt."""

    entry: str
    accepted: int
    helps: int
    hurts: int


def entry_results(baseline: Sequence[EpisodeRecord], played: Sequence[EpisodeRecord]) -> list[EntryResult]:
    """Paired outcomes by entry; an episode counts once for an entry. The most harmful come first."""
    counts: dict[str, Counter[str]] = {}
    for before, after in zip(baseline, played, strict=True):
        difference = after.score - before.score
        for entry in accepted_entries(after):
            count = counts.setdefault(entry, Counter())
            count["accepted"] += 1
            count["helps"] += difference > SAME_SCORE
            count["hurts"] += difference < -SAME_SCORE
    results = [EntryResult(entry=entry, **_counted(count)) for entry, count in counts.items()]
    return sorted(results, key=lambda one: (one.helps - one.hurts, -one.accepted, one.entry))


def accepted_entries(record: EpisodeRecord) -> set[str]:
    """The entries in the prompts of accepted actions."""
    entries = set()
    for step in record.steps:
        taken = step.first if step.chosen is None else step.candidates[step.chosen].record
        entries |= {recall.entry for recall in taken.recalls}
    return entries


def _counted(count: Counter[str]) -> dict[str, int]:
    return {name: count[name] for name in ("accepted", "helps", "hurts")}
