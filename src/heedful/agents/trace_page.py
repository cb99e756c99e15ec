"""The trace viewer: each episode without memory beside the controlled one, as one HTML page."""

from collections.abc import Mapping, Sequence
from html import escape

from heedful.agents.agent_lock import AgentLock
from heedful.agents.agent_metrics import BASELINE, SAME_SCORE
from heedful.agents.episode_record import EpisodeRecord, StepRecord
from heedful.agents.trail import cut
from heedful.records import CandidateRecord, RecallRef
from heedful.report.style import STYLE

TRACE_STYLE = """
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: .6rem; }
.step { border: 1px solid #ddd; padding: .4rem .6rem; font-size: .875rem; overflow-wrap: anywhere; }
.step .seen { color: #444; max-height: 14rem; overflow: auto; white-space: pre-line; }
@media (max-width: 40rem) { .pair { grid-template-columns: 1fr; } }
.parted { border: 2px solid #d55e00; }
.first-parting { grid-column: 1 / -1; color: #d55e00; font-weight: 700; }
.accept { color: #0072b2; font-weight: 600; }
.rollback { color: #b00020; }
.invalid { text-decoration: underline wavy #b00020; }
.recall { margin: .2rem 0 .2rem 1rem; color: #444; }
"""
NO_TEXT = "(the text is not stored)"
GOAL_LENGTH = 120
"""Characters of the goal in the line of an episode."""


def trace_file(arm: str, main: str) -> str:
    """The name of an arm's page; that of the main arm is `traces.html`."""
    return "traces.html" if arm == main else f"traces-{arm.replace(' ', '-')}.html"


def trace_page(
    lock: AgentLock,
    arm: str,
    episodes: Mapping[str, Sequence[EpisodeRecord]],
    texts: Mapping[str, str],
    entries: Mapping[str, str],
) -> str:
    """All paired episodes of an arm; `texts` by digest, `entries` by id."""
    reader = TraceReader(texts, entries)
    pairs = sorted(zip(episodes[BASELINE], episodes[arm], strict=True), key=_by_interest)
    body = "\n".join(reader.episode(before, after) for before, after in pairs)
    title = escape(f"{lock.study}: traces of {arm}")
    others = " · ".join(
        f'<a href="{escape(trace_file(other, lock.main))}">{escape(other)}</a>'
        for other in episodes
        if other not in (BASELINE, arm)
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}{TRACE_STYLE}</style></head><body><main>\n<h1>{title}</h1>\n"
        f"<p>Left: {BASELINE}. Right: {escape(arm)}. The first step where they part is marked. "
        "Episodes with another score come first, the largest losses before the gains.</p>\n"
        f'<p>Other arms: {others}. <a href="report.html">Report</a>.</p>\n'
        f"{body}\n</main></body></html>\n"
    )


def _outcome(change: float) -> str:
    """The outcome of a pair in a word that does not depend on colour; nothing if the scores are equal."""
    if abs(change) <= SAME_SCORE:
        return ""
    kind, word = ("rollback", "hurt") if change < 0 else ("accept", "help")
    return f' <b class="{kind}">{word}</b>'


def _by_interest(pair: tuple[EpisodeRecord, EpisodeRecord]) -> tuple[bool, float, bool]:
    """Other scores first, the largest loss at the top; then other actions; then the rest in its order."""
    before, after = pair
    change = after.score - before.score
    return abs(change) <= SAME_SCORE, change, first_parting(before, after) is None


def first_parting(before: EpisodeRecord, after: EpisodeRecord) -> int | None:
    """The first step with different actions; None if the episodes are the same."""
    for at, (one, other) in enumerate(zip(before.steps, after.steps, strict=False)):
        if one.action != other.action:
            return at
    shorter = min(len(before.steps), len(after.steps))
    return shorter if len(before.steps) != len(after.steps) else None


class TraceReader:
    """Writes episodes as HTML; every text from a model, a world or a bank is escaped."""

    def __init__(self, texts: Mapping[str, str], entries: Mapping[str, str]) -> None:
        self._texts = texts
        self._entries = entries

    def episode(self, before: EpisodeRecord, after: EpisodeRecord) -> str:
        """Two episodes of one seed, step by step."""
        parting = first_parting(before, after)
        rows = []
        for at in range(max(len(before.steps), len(after.steps))):
            if at == parting:
                rows.append('<div class="first-parting" role="note">Here the episodes part</div>')
            rows += [self._cell(episode, at, at == parting) for episode in (before, after)]
        goal = escape(self._texts.get(after.goal, NO_TEXT))
        change = f"{before.score:.2f} → {after.score:.2f}{_outcome(after.score - before.score)}"
        parted = "the same actions" if parting is None else f"parts at step {parting + 1}"
        ends = f"{before.end} / {after.end}; {parted}"
        about = f" {escape(cut(self._texts[after.goal], GOAL_LENGTH))}" if after.goal in self._texts else ""
        summary = f"Episode {after.seed}: {change} ({ends}).{about}"
        return (
            f'<details id="episode-{after.seed}"><summary>{summary}</summary>'
            f'<p><b>Goal:</b> {goal}</p><div class="pair">{"".join(rows)}</div></details>'
        )

    def _cell(self, episode: EpisodeRecord, at: int, parted: bool) -> str:
        if at >= len(episode.steps):
            ended = f"ended: {episode.end} {episode.error}" if at == len(episode.steps) else ""
            return f'<div class="step">{escape(ended)}</div>'
        look = "step parted" if parted else "step"
        return f'<div class="{look}">{self._step(episode.steps[at], at + 1)}</div>'

    def _step(self, step: StepRecord, number: int) -> str:
        seen = escape(self._texts.get(step.observation, NO_TEXT))
        sure = "unknown" if step.confidence is None else f"{step.confidence:.3f}"
        parts = [
            f'<div class="seen">{number}. {seen}</div>',
            f"<div>first: <code>{escape(step.first_action)}</code>, confidence {sure}, "
            f"{escape(step.route.choice)} ({escape(step.route.reason)})</div>",
            self._recalls(step.first.recalls),
            *(self._candidate(candidate) for candidate in step.candidates),
        ]
        mark = "" if step.valid else ' class="invalid"'
        parts.append(f"<div><b>→ <code{mark}>{escape(step.action)}</code></b> score {step.score:.2f}</div>")
        return "".join(parts)

    def _candidate(self, candidate: CandidateRecord) -> str:
        record, verdict = candidate.record, candidate.verdict
        sure = "" if candidate.confidence is None else f", confidence {candidate.confidence:.3f}"
        said = escape(record.answer or record.error or "nothing")
        return (
            f"{self._recalls(record.recalls)}<div>{escape(record.source)}: <code>{said}</code>{sure}, "
            f'<span class="{verdict.choice}">{verdict.choice} ({escape(verdict.reason)})</span></div>'
        )

    def _recalls(self, recalls: Sequence[RecallRef]) -> str:
        return "".join(
            f'<div class="recall">{recall.score:.2f} {escape(recall.entry)}: '
            f"{escape(self._entries.get(recall.entry, NO_TEXT))}</div>"
            for recall in recalls
        )
