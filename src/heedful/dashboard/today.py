"""Is memory helping? The numbers of a window of time, and the sentence that sums them up."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from heedful.dashboard.effects import EffectCounts, Tone, count_effects
from heedful.errors import UsageError
from heedful.records import DecisionFacts, Traffic
from heedful.report.phrases import change

WindowName = Literal["hour", "day", "week"]
SECONDS: Mapping[str, float] = {"hour": 3600.0, "day": 86_400.0, "week": 604_800.0}
WORDS: Mapping[str, str] = {"hour": "hour", "day": "24 hours", "week": "7 days"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Seconds per answer."""

    n: int
    median: float
    p95: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficSums:
    """The decisions of one kind, added up."""

    decisions: int
    calls: int
    tokens: int
    faulty: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Today:
    """The numbers of one window."""

    window: WindowName
    answers: TrafficSums
    kept: TrafficSums
    consulted: TrafficSums
    accepted: int
    effects: EffectCounts | None
    """None if nothing is graded."""
    kept_latency: Latency | None
    consulted_latency: Latency | None


def today_of(
    window: WindowName,
    traffic: Sequence[Traffic],
    graded: Sequence[DecisionFacts],
    recent: Sequence[DecisionFacts],
) -> Today:
    """The numbers of a window from its counts, its graded decisions and its newest ones."""
    consulted = [row for row in traffic if row.route == "consult"]
    return Today(
        window=window,
        answers=add_up(traffic),
        kept=add_up(row for row in traffic if row.route == "keep"),
        consulted=add_up(consulted),
        accepted=sum(row.decisions for row in consulted if row.verdict == "accept"),
        effects=count_effects(graded) if graded else None,
        kept_latency=_latency_or_none(recent, "keep"),
        consulted_latency=_latency_or_none(recent, "consult"),
    )


def add_up(traffic: Iterable[Traffic]) -> TrafficSums:
    rows = list(traffic)
    return TrafficSums(
        decisions=sum(row.decisions for row in rows),
        calls=sum(row.calls for row in rows),
        tokens=sum(row.tokens for row in rows),
        faulty=sum(row.faulty for row in rows),
    )


def latency(seconds: Sequence[float]) -> Latency:
    """Median and 95th percentile, as the nearest rank."""
    if not seconds:
        raise UsageError("a latency needs at least one answer")
    ordered = sorted(seconds)

    def at(percentile: int) -> float:
        return ordered[(len(ordered) * percentile + 99) // 100 - 1]

    return Latency(n=len(ordered), median=at(50), p95=at(95))


def _latency_or_none(recent: Sequence[DecisionFacts], route: str) -> Latency | None:
    seconds = [facts.seconds for facts in recent if facts.route == route]
    return latency(seconds) if seconds else None


def headline(today: Today) -> tuple[str, Tone]:
    """The sentence at the top, and whether it is good news."""
    span, effects = WORDS[today.window], today.effects
    answers = today.answers.decisions
    if not answers:
        return f"No answers in the last {span}.", "unclear"
    if effects is None:
        return (
            f"None of {answers:,} answers in the last {span} is graded: it is unknown whether memory helps.",
            "unclear",
        )
    net = effects.net
    if net is None:
        return (
            f"Memory changed all {effects.graded:,} graded answers in the last {span}, and no feedback "
            "compares them with the answers without memory.",
            "unclear",
        )
    counts = (
        f"Memory helped {effects.helps:,} and hurt {effects.hurts:,} of {effects.proven:,} graded answers in "
        f"the last {span}"
    )
    endings: dict[Tone, str] = {
        "gain": f": a gain of {change(net)} points.",
        "loss": f": a loss of {change(net)} points.",
        "unclear": f": too few to say whether it helps ({change(net)} points).",
    }
    return counts + endings[effects.tone], effects.tone
