"""`heedful decisions`: list, show, export and count recorded decisions."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from heedful.cli.moments import moment_of
from heedful.cli.options import Json, Store
from heedful.cli.output import counted, print_json, result, say
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.memory.storage import Storage
    from heedful.records import Decision, DecisionFilter, Feedback
    from heedful.trials import TrialEffect

app = typer.Typer(
    help="List, show, export and count recorded decisions.", no_args_is_help=True, rich_markup_mode=None
)
FeedbackByDecision = Mapping[str, Sequence["Feedback"]]

Since = Annotated[str | None, typer.Option(help="From this time on: an ISO date, or a span such as 7d.")]
Until = Annotated[str | None, typer.Option(help="Before this time: an ISO date, or a span such as 7d.")]
RouteChoice = Annotated[Literal["keep", "consult"] | None, typer.Option("--route", help="Only this route.")]
VerdictChoice = Annotated[
    Literal["accept", "rollback"] | None, typer.Option("--verdict", help="Only this verdict.")
]
OfBank = Annotated[str | None, typer.Option("--bank", "-b", help="Only decisions that may use this bank.")]
OfEntry = Annotated[str | None, typer.Option("--entry", help="Only decisions that recalled this entry.")]
OfUser = Annotated[str | None, typer.Option("--user", help="Only decisions of this user (scope user=NAME).")]
Graded = Annotated[
    bool | None, typer.Option("--graded/--ungraded", help="Only with, or only without feedback.")
]


@app.command()
def ls(
    since: Since = None,
    until: Until = None,
    route: RouteChoice = None,
    verdict: VerdictChoice = None,
    bank: OfBank = None,
    entry: OfEntry = None,
    user: OfUser = None,
    graded: Graded = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of decisions.")] = 20,
    store: Store = None,
    json: Json = False,
) -> None:
    """List decisions, newest first."""
    wanted = _filter(since, until, route, verdict, bank, entry, user, graded)
    decisions, feedback = _read(_opened(store), wanted, limit)
    if json:
        print_json({"decisions": [_brief(decision, feedback) for decision in decisions]})
        return
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("id", "time", "route", "verdict", "feedback", "question", "answer"):
        table.add_column(heading, no_wrap=heading in ("id", "time"))
    for decision in decisions:
        told = _brief(decision, feedback)
        when = f"{datetime.fromtimestamp(decision.at):%Y-%m-%d %H:%M}"
        said = ", ".join(given.value for given in feedback[decision.id])
        cells = (told["route"], told["verdict"] or "", said, told["question"], told["answer"])
        table.add_row(decision.id, when, *(escape(str(cell)) for cell in cells))
    result().print(table)
    if not decisions:
        say("no decision passes these filters")


@app.command()
def show(
    decision: Annotated[str, typer.Argument(help="Id of a decision, an id prefix, or `last`.")] = "last",
    store: Store = None,
    json: Json = False,
) -> None:
    """Show a decision step by step, with its trial and its feedback."""
    from heedful.explain import entry_texts, explain, trial_words

    opened = _opened(store)
    recorded = asyncio.run(opened.journal.find(decision))
    feedback = asyncio.run(opened.feedback.of([recorded]))
    if json:
        print_json(_whole(recorded, feedback))
        return
    lines = explain(recorded, asyncio.run(entry_texts(recorded, opened)))
    if trial := trial_words(recorded):
        lines.append(f"  trial    {trial}")
    if (rollout := recorded.assignment) is not None:
        served = "the policy's answer" if rollout.arm == "policy" else "the first answer"
        lines.append(f"  rollout  {rollout.mode}, served {served}; key {rollout.key}")
    lines += feedback_lines(feedback[recorded.id])
    result().print("\n".join(lines), markup=False, soft_wrap=True)


@app.command()
def export(
    file: Annotated[Path | None, typer.Argument(help="Output file [default: standard output].")] = None,
    since: Since = None,
    until: Until = None,
    route: RouteChoice = None,
    verdict: VerdictChoice = None,
    bank: OfBank = None,
    entry: OfEntry = None,
    user: OfUser = None,
    graded: Graded = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Write decisions with their feedback as JSON lines, oldest first."""
    import json as encoder

    wanted = _filter(since, until, route, verdict, bank, entry, user, graded)
    decisions, feedback = _read(_opened(store), wanted, None)
    rows = [_whole(decision, feedback) for decision in reversed(decisions)]
    if json and file is None:
        print_json({"decisions": rows})
        return
    text = "".join(f"{encoder.dumps(row, ensure_ascii=False)}\n" for row in rows)
    if file is None:
        typer.echo(text, nl=False)
        return
    from heedful.protocol.workspace import write_text

    write_text(file, text)
    if json:
        print_json({"written": len(rows), "file": str(file)})
        return
    say(f"{counted(len(rows), 'decision')} written to {file}")


@app.command()
def stats(
    since: Since = None,
    until: Until = None,
    route: RouteChoice = None,
    verdict: VerdictChoice = None,
    bank: OfBank = None,
    entry: OfEntry = None,
    user: OfUser = None,
    graded: Graded = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Count decisions, grades and the effect of memory in randomised trials."""
    from heedful.trials import trial_effect

    opened = _opened(store)
    wanted = _filter(since, until, route, verdict, bank, entry, user, graded)
    decisions, feedback = _read(opened, wanted, None)
    announced = asyncio.run(opened.journal.announced())
    counts = _counts(decisions, feedback, trial_effect(decisions, feedback), announced)
    if json:
        print_json(counts)
        return
    result().print("\n".join(_stats_lines(counts)), markup=False, soft_wrap=True)


def feedback_lines(given: Sequence["Feedback"]) -> list[str]:
    """One line for each piece of feedback on a decision."""
    return [f"  feedback {said.kind}: {said.value}" for said in given]


def _opened(store: str | None) -> "Storage":
    from heedful.cli.resources import open_known_store

    return open_known_store(store)


def _filter(
    since: str | None,
    until: str | None,
    route: Literal["keep", "consult"] | None,
    verdict: Literal["accept", "rollback"] | None,
    bank: str | None,
    entry: str | None,
    user: str | None,
    graded: bool | None,
) -> "DecisionFilter":
    from heedful.records import DecisionFilter

    begin, end = moment_of(since), moment_of(until)
    if begin is not None and end is not None and end <= begin:
        raise UsageError(f"--until {until} is not after --since {since}")
    return DecisionFilter(
        since=begin,
        until=end,
        route=route,
        verdict=verdict,
        bank=bank,
        entry=entry,
        user=user,
        graded=graded,
    )


def _read(
    store: "Storage", wanted: "DecisionFilter", limit: int | None
) -> tuple[Sequence["Decision"], FeedbackByDecision]:

    decisions = asyncio.run(store.journal.select(wanted, limit))
    return decisions, asyncio.run(store.feedback.of(decisions))


def _brief(decision: "Decision", feedback: FeedbackByDecision) -> dict[str, Any]:
    return {
        "id": decision.id,
        "at": decision.at,
        "question": decision.task.question or decision.task.search_text,
        "answer": decision.answer,
        "route": decision.route.choice,
        "verdict": None if decision.verdict is None else decision.verdict.choice,
        "reason": decision.route.reason if decision.verdict is None else decision.verdict.reason,
        "calls": decision.calls,
        "feedback": {given.kind: given.value for given in feedback[decision.id]},
    }


def _whole(decision: "Decision", feedback: FeedbackByDecision) -> dict[str, Any]:
    from msgspec import to_builtins

    from heedful.decisions import decision_fields

    return {**decision_fields(decision), "feedback": to_builtins(list(feedback[decision.id]))}


def _counts(
    decisions: Sequence["Decision"], feedback: FeedbackByDecision, effect: "TrialEffect", announced: int
) -> dict[str, Any]:
    from heedful.stats.intervals import wilson
    from heedful.trials import final_grade

    grades = [grade for d in decisions if (grade := final_grade(d, feedback[d.id])) is not None]
    low, high = wilson(sum(grades), len(grades)) if grades else (None, None)
    difference = effect.difference
    return {
        "decisions": len(decisions),
        "routes": dict(Counter(d.route.choice for d in decisions)),
        "verdicts": dict(Counter(d.verdict.choice for d in decisions if d.verdict is not None)),
        "reasons": dict(Counter(d.verdict.reason for d in decisions if d.verdict is not None)),
        "calls_per_answer": fmean(d.calls for d in decisions) if decisions else None,
        "feedback": dict(Counter(given.kind for d in decisions for given in feedback[d.id])),
        "graded": {"n": len(grades), "right": sum(grades), "low": low, "high": high},
        "trials": {
            "begun": announced,
            "decided": sum(d.trial is not None for d in decisions),
            "used": effect.used,
            "used_right": effect.used_right,
            "held_out": effect.held_out,
            "held_out_right": effect.held_out_right,
            "difference": None if difference is None else difference.value,
            "low": None if difference is None else difference.low,
            "high": None if difference is None else difference.high,
        },
    }


def _stats_lines(counts: Mapping[str, Any]) -> list[str]:
    def listed(part: str) -> str:
        return ", ".join(f"{name} {count}" for name, count in counts[part].items()) or "none"

    graded, trials = counts["graded"], counts["trials"]
    lines = [
        counted(counts["decisions"], "decision"),
        f"  routes    {listed('routes')}",
        f"  verdicts  {listed('verdicts')} ({listed('reasons')})",
        f"  feedback  {listed('feedback')}",
    ]
    if graded["n"]:
        share = graded["right"] / graded["n"]
        interval = f"95% interval {graded['low']:.0%} to {graded['high']:.0%}"
        lines.append(
            f"  right     {graded['right']} of {graded['n']} graded answers ({share:.0%}, {interval})"
        )
    if trials["begun"]:
        lines.append(f"  trials    {trials['begun']} begun, {trials['decided']} of these decisions")
    if trials["difference"] is not None:
        lines.append(
            f"            memory used: {trials['used_right']} of {trials['used']} right, held out: "
            f"{trials['held_out_right']} of {trials['held_out']}; difference {trials['difference']:+.1%} "
            f"[{trials['low']:+.1%}, {trials['high']:+.1%}]"
        )
    return lines
