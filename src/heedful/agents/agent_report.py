"""The report of an agent study, from its episodes and its lock alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heedful.agents.agent_figures import score_figure
from heedful.agents.agent_fit import ALWAYS
from heedful.agents.agent_lock import AgentLock, read_agent_lock, read_locked_fit
from heedful.agents.agent_metrics import (
    BASELINE,
    ArmResult,
    arm_results,
    entry_results,
    pair_episodes,
)
from heedful.agents.agent_tables import (
    delta_table,
    entry_table,
    fit_table,
    interval_text,
    main_table,
    reason_table,
    step_table,
)
from heedful.agents.agent_workspace import AgentFolder, newest, read_texts
from heedful.agents.episode_record import EpisodeRecord
from heedful.agents.row_file import RowFile
from heedful.agents.trace_page import trace_file, trace_page
from heedful.decisions import policy_id
from heedful.errors import UsageError
from heedful.protocol.workspace import write_json, write_text
from heedful.report.markdown import markdown_report
from heedful.report.page import Part, small_page
from heedful.report.report_table import plain_text
from heedful.stats.intervals import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReport:
    summary: dict[str, Any]
    """The stable fields of `--json`."""
    text: str


def write_agent_report(folder: AgentFolder, entry_texts: Mapping[str, str]) -> AgentReport:
    """Compute the results and write HTML, Markdown, JSON and traces, with the texts of the bank's entries."""
    lock = read_agent_lock(folder.lock)
    file = RowFile(folder.episodes, EpisodeRecord)
    played = _locked_episodes(lock, file.rows)
    _refuse_nothing_but_failures(played, file.damaged)
    episodes = pair_episodes(played, list(lock.arms))
    results = arm_results(episodes, seed=0)
    entries = entry_results(episodes[BASELINE], episodes[lock.main])
    summary = summary_of(lock, results)
    sentences = _sentences(lock, results, file.damaged) + _failures(played)
    fit = read_locked_fit(folder.fit, lock)
    tables = [main_table(results, lock.main), step_table(results), delta_table(results)]
    tables += [reason_table(results), entry_table(entries, entry_texts, lock.main), fit_table(fit)]
    parts: list[Part] = [tables[0], score_figure(results, lock.main), *tables[1:]]
    write_json(folder.folder / "report.json", summary)
    write_text(folder.folder / "report.md", markdown_report(lock.study, sentences, tables))
    pages = {trace_file(arm, lock.main): f"traces of {arm}" for arm in episodes if arm != BASELINE}
    page = small_page(f"{lock.study}: heedful report", sentences, parts, pages)
    write_text(folder.folder / "report.html", page)
    texts = read_texts(folder)
    for arm in episodes:
        if arm != BASELINE:
            traces = trace_page(lock, arm, episodes, texts, entry_texts)
            write_text(folder.folder / trace_file(arm, lock.main), traces)
    return AgentReport(summary=summary, text="\n\n".join([*sentences, *map(plain_text, tables[:3])]))


def _refuse_nothing_but_failures(played: Sequence[EpisodeRecord], damaged: int) -> None:
    """Say why there is nothing to report, where another run of the study would change nothing."""
    if played and all(record.failed for record in played):
        raise UsageError(
            f"all {len(played)} plays of test episodes failed, the last one with: {played[-1].error[:200]}; "
            "mend that and use heedful agent study --retry-failed"
        )
    if not played and damaged:
        raise UsageError(
            f"no test episode in episodes.jsonl can be read (damaged rows: {damaged}): restore the file"
        )


def _locked_episodes(lock: AgentLock, rows: Sequence[EpisodeRecord]) -> list[EpisodeRecord]:
    """The newest test episodes of the locked policies and seeds."""
    policies = {arm.name: policy_id(arm.policy) for arm in lock.test_arms()}
    seeds = set(lock.seeds["test"])
    return [
        row
        for row in newest(list(rows)).values()
        if row.side == "test"
        and row.seed in seeds
        and policies.get(row.arm) == row.policy
        and row.model == lock.digests["model"]
    ]


def summary_of(lock: AgentLock, results: Mapping[str, ArmResult]) -> dict[str, Any]:
    """The stable fields of a report."""
    return {
        "environment": lock.environment.get("environment", lock.study),
        "study": lock.study,
        "main": lock.main,
        "episodes": results[BASELINE].episodes,
        "planned": len(lock.seeds["test"]),
        "arms": {name: _arm_fields(result) for name, result in results.items()},
        "delta": _delta_fields(results[lock.main].delta),
    }


def _arm_fields(result: ArmResult) -> dict[str, Any]:
    names = ("success", "score", "calls", "helps", "hurts", "har", "ltr", "tr", "routed", "accepted")
    more = ("invalid", "steps", "tokens_read", "reasons", "ends")
    fields = {name: getattr(result, name) for name in (*names, *more)}
    return {**fields, "delta": _delta_fields(result.delta)}


def _delta_fields(delta: Mapping[str, Interval]) -> dict[str, dict[str, float]]:
    return {
        name: {"value": interval.value, "low": interval.low, "high": interval.high}
        for name, interval in delta.items()
    }


def _failures(records: Sequence[EpisodeRecord]) -> list[str]:
    """A sentence about episodes that are left out because the model or the environment failed."""
    failed = [record for record in records if record.failed]
    if not failed:
        return []
    seeds = sorted({record.seed for record in failed})
    last = failed[-1]
    return [
        f"Left out of every arm because the model or the environment failed: episodes "
        f"{', '.join(map(str, seeds[:10]))} ({len(seeds)} in all); for example {last.arm}, {last.end}: "
        f"{last.error[:200]}; heedful agent study --retry-failed plays them again"
    ]


def _sentences(lock: AgentLock, results: Mapping[str, ArmResult], damaged: int) -> list[str]:
    base, main = results[BASELINE], results[lock.main]
    planned = len(lock.seeds["test"])
    score = main.delta["score"]
    subject = "Memory in every prompt" if lock.main == ALWAYS else f"The {lock.main} policy"
    sentences = [
        f"{lock.environment.get('environment')} with {lock.model}, locked {lock.locked_at} "
        f"({lock.lock[:12]}); {base.episodes} of {planned} test episodes, each played by every arm.",
        f"{subject} scores {main.score:.3f} against {base.score:.3f} without memory: "
        f"{interval_text(score)} with {main.helps} helps and {main.hurts} hurts.",
    ]
    if not main.routed:
        sentences.append(f"The {lock.main} policy never consulted memory on the test side.")
    pages = ", ".join(trace_file(name, lock.main) for name in results if name != BASELINE)
    sentences.append(f"Every episode beside the one without memory, step by step: {pages}.")
    if lock.played_before:
        sentences.append(
            f"{lock.played_before} plays of test episodes (one per episode and arm) existed before the lock."
        )
    if damaged:
        sentences.append(f"{damaged} damaged lines of the episode file were skipped.")
    return [*sentences, *([lock.notes] if lock.notes else [])]
