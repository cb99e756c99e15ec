"""`heedful study from-decisions`: a study whose fit side is real traffic."""

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.moments import moment_of
from heedful.cli.options import Json, Store
from heedful.cli.output import counted, print_json, result, say


def from_decisions(
    out: Annotated[Path, typer.Option(help="A new folder for the study.")],
    since: Annotated[
        str | None, typer.Option(help="Decisions from this time on: an ISO date, or a span such as 30d.")
    ] = None,
    test_share: Annotated[
        float, typer.Option(min=0.05, max=0.95, help="Share of the questions, the newest ones, to test on.")
    ] = 0.33,
    store: Store = None,
    json: Json = False,
) -> None:
    """Turn decisions with a known answer into a study, without decoding their passes again."""
    from heedful.cli.resources import open_known_store
    from heedful.protocol.from_decisions import GradedDecision, draft_study
    from heedful.records import DecisionFilter

    opened = open_known_store(store)
    wanted = DecisionFilter(since=moment_of(since), graded=True)
    decisions = asyncio.run(opened.journal.select(wanted))
    feedback = asyncio.run(opened.feedback.of(decisions))
    graded = [
        GradedDecision(decision=decision, answer=given)
        for decision in decisions
        for given in feedback[decision.id]
        if given.kind == "answer"
    ]
    name = out.resolve().name
    drafted = draft_study(out, name, graded, lambda bank: asyncio.run(opened.entries(bank)), test_share)
    if json:
        print_json({"study": name, "folder": str(out), **asdict(drafted)})
        return
    result().print(
        f"{name}: {drafted.fit} fit and {drafted.test} test questions, {drafted.passes} recorded passes",
        markup=False,
        soft_wrap=True,
    )
    if drafted.other_settings or drafted.repeated:
        say(
            f"left out: {counted(drafted.other_settings, 'decision')} with other settings or tasks, "
            f"{counted(drafted.repeated, 'older decision')} about the same question"
        )
    say(f"next: heedful study run {out} decodes the missing passes, fits, locks and tests")
