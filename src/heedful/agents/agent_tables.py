"""The tables of an agent report."""

from collections.abc import Mapping, Sequence
from typing import Any

from heedful.agents.agent_metrics import BASELINE, ArmResult, EntryResult
from heedful.report.report_table import ReportTable
from heedful.stats.intervals import Interval

SHOWN_ENTRIES = 15


def main_table(results: Mapping[str, ArmResult], main: str) -> ReportTable:
    rows = tuple(
        (
            result.name,
            f"{result.success:.1%}",
            f"{result.score:.3f}",
            f"{result.calls:.1f}",
            f"{result.helps} / {result.hurts}",
            _optional(result.har),
            f"{result.ltr:+.3f}",
            _optional(result.tr),
        )
        for result in results.values()
    )
    return ReportTable(
        name="arms",
        title="Arms",
        note="Helps and hurts: episodes that end with a higher or lower score than without memory. "
        "HAR: share of accepted steps that are in hurt episodes. "
        "LTR: mean of the worst 10% of paired score differences. "
        "TR: share of troubled episodes (failed or with an invalid step without memory) that end higher.",
        head=("arm", "success", "score", "calls", "helps / hurts", "HAR", "LTR", "TR"),
        rows=rows,
        marked=frozenset(at for at, name in enumerate(results) if name == main),
    )


def step_table(results: Mapping[str, ArmResult]) -> ReportTable:
    rows = tuple(
        (
            r.name,
            f"{r.steps:.1f}",
            f"{r.routed:.2f}",
            f"{r.accepted:.2f}",
            f"{r.invalid:.2f}",
            f"{r.tokens_read:.0f}",
            ", ".join(f"{end} {count}" for end, count in r.ends.items()),
        )
        for r in results.values()
    )
    return ReportTable(
        name="steps",
        title="Steps per episode",
        note="Routed: steps at which memory was to be consulted; where nothing is recalled, no call is made. "
        "Accepted: steps whose second action was accepted, also if it is the same as the first. "
        "Tokens read: prompt tokens per call outside the prefix cache. End: why episodes ended.",
        head=("arm", "steps", "routed", "accepted", "invalid", "tokens read", "end"),
        rows=rows,
        words=frozenset({6}),
    )


def delta_table(results: Mapping[str, ArmResult]) -> ReportTable:
    rows = tuple(
        (
            r.name,
            interval_text(r.delta["success"]),
            interval_text(r.delta["score"]),
            interval_text(r.delta["calls"], 1),
        )
        for r in results.values()
        if r.name != BASELINE
    )
    return ReportTable(
        name="delta",
        title="Differences to no memory",
        note="Paired by episode, with 95% bootstrap intervals over episodes.",
        head=("arm", "success", "score", "calls"),
        rows=rows,
    )


def reason_table(results: Mapping[str, ArmResult]) -> ReportTable:
    rows = tuple(
        (result.name, reason, str(count))
        for result in results.values()
        for reason, count in result.reasons.items()
    )
    return ReportTable(
        name="reasons",
        title="Why second actions were refused",
        note="Counts over all episodes.",
        head=("arm", "reason", "count"),
        rows=rows,
        words=frozenset({1}),
        empty="no second action was refused",
    )


def entry_table(entries: Sequence[EntryResult], texts: Mapping[str, str], main: str) -> ReportTable:
    rows = tuple(
        (
            entry.entry,
            str(entry.accepted),
            str(entry.helps),
            str(entry.hurts),
            texts.get(entry.entry, "")[:120],
        )
        for entry in entries[:SHOWN_ENTRIES]
    )
    return ReportTable(
        name="entries",
        title=f"Entries in prompts that the {main} policy accepted",
        note="Episodes in which an action was taken with the entry in its prompt, by their paired outcome; "
        "the most harmful entries first. Entries recalled together share an outcome.",
        head=("entry", "episodes", "helps", "hurts", "text"),
        rows=rows,
        words=frozenset({4}),
        empty=f"the {main} policy accepted no action with memory",
    )


def fit_table(fit: Mapping[str, Any]) -> ReportTable:
    """The policies that were played on the fit side, and what the branches showed."""
    rows = tuple(
        (
            score["family"],
            _number(score["threshold"]),
            _margin(score),
            str(score["budget"]["passes"]),
            str(score["budget"]["cooldown"]),
            f"{score['score']:.3f}",
            f"{score['calls']:.2f}",
        )
        for score in fit["scores"]
    )
    branches = fit.get("branches", [])
    better = sum(branch["second"] > branch["first"] for branch in branches)
    worse = sum(branch["second"] < branch["first"] for branch in branches)
    note = (
        "Policies played on the fit side; the marked ones were chosen and locked. "
        f"Branches: of {len(branches)} steps at which memory proposed another action, finishing the episode "
        f"with it scored higher {better} times, lower {worse} times. "
        f"Memory had something to recall at {fit.get('recalled', 0.0):.0%} of the fit steps. "
    )
    return ReportTable(
        name="fit",
        title="Fit side",
        note=note + " ".join(fit.get("notes", [])),
        head=("family", "threshold", "margin", "budget", "cooldown", "score", "calls per step"),
        rows=rows,
        marked=frozenset(at for at, score in enumerate(fit["scores"]) if _is_chosen(score, fit["best"])),
    )


def _is_chosen(score: Mapping[str, Any], best: Mapping[str, Any]) -> bool:
    """Whether a played policy is the one that its family was locked with."""
    names = ("threshold", "margins", "budget")
    return bool(all(score[name] == best[score["family"]][name] for name in names))


def _margin(score: Mapping[str, Any]) -> str:
    """The margin of a threshold policy; a value policy has none."""
    return ", ".join(map(_number, (score["margins"] or {}).values())) or "–"


def _number(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _optional(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def interval_text(interval: Interval, digits: int = 3) -> str:
    """A difference with its interval; a bootstrap has none if all pairs differ alike."""
    if interval.low == interval.high:
        return f"{interval.value:+.{digits}f} (all {interval.n} pairs alike)"
    value, low, high = (f"{number:+.{digits}f}" for number in (interval.value, interval.low, interval.high))
    return f"{value} [{low}, {high}]"
