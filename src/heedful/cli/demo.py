"""`heedful demo`: what heedful does, on a made-up company, in three minutes."""

import asyncio
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import Json, Store, Threads
from heedful.cli.output import print_json, progress, result, say

if TYPE_CHECKING:
    from heedful.demo.compare import Comparison
    from heedful.memory import SqliteStore
    from heedful.ports import Model

TITLES = {"never": "no memory", "always": "always retrieve", "heedful": "heedful"}


def demo(
    limit: Annotated[
        int | None, typer.Option(min=1, help="Ask only this many of the questions.", show_default="all")
    ] = None,
    threads: Threads = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Ask a small model about a made-up company: without memory, with it always, and with heedful."""
    from heedful.cli.opening import open_model, open_store, pull_weights
    from heedful.demo.scenario import entries

    start = time.perf_counter()
    model = open_model(None, None, "smollm2-135m", threads)
    pull_weights("all-minilm-l6-v2")
    opened = open_store(store)
    opened.put("demo", entries())
    compared = asyncio.run(_compared(model, opened, limit))
    seconds = time.perf_counter() - start
    scores = {arm: compared.score(arm) for arm in TITLES}
    if json:
        harm = [asdict(entry) for entry in compared.entry_scores()]
        decision = compared.outcomes["heedful"][compared.telling()].decision
        printed = {arm: asdict(score) for arm, score in scores.items()}
        print_json({"arms": printed, "seconds": seconds, "harmful_entries": harm, "decision": decision})
        return
    _draw(compared, opened, seconds)


async def _compared(model: "Model", store: "SqliteStore", limit: int | None) -> "Comparison":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from heedful.demo.compare import ARMS, compare
    from heedful.demo.scenario import questions, source
    from heedful.memory.journal import SqliteJournal

    asked = questions("show")[:limit]
    console = progress()
    if not console.is_terminal:
        say(f"asking {len(asked)} questions under {len(ARMS)} arms …")
    columns = (TextColumn("{task.description:<16}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        rows = {arm: bars.add_task(TITLES[arm], total=len(asked)) for arm in ARMS}
        return await compare(
            model,
            source(),
            asked,
            journal=SqliteJournal(store.database),
            on_answer=lambda arm: bars.advance(rows[arm]),
        )


def _draw(compared: "Comparison", store: "SqliteStore", seconds: float) -> None:
    from rich.table import Table

    from heedful.cli.explain import explain
    from heedful.memory.journal import SqliteJournal
    from heedful.stats.intervals import wilson

    console = result()
    table = Table(box=None, pad_edge=False, title_justify="left")
    for heading in ("", "right", "95% interval", "helps", "hurts", "calls a question"):
        table.add_column(heading, justify="left" if not heading else "right")
    for arm, title in TITLES.items():
        score = compared.score(arm)
        low, high = wilson(score.right, score.n)
        table.add_row(
            title,
            f"{score.right} of {score.n}",
            f"{low:.0%} to {high:.0%}",
            str(score.helps),
            str(score.hurts),
            f"{score.calls_per_question:.2f}",
        )
    console.print(table)
    console.print("\nhelps: wrong without memory, right in the end; hurts: the other way round.", style="dim")
    outcome = compared.outcomes["heedful"][compared.telling()]
    always = compared.outcomes["always"][compared.telling()]
    console.print(f"\n[bold]One decision[/bold] (with memory always in the prompt: {always.answer!r})")
    record = SqliteJournal(store.database).find(outcome.decision)
    console.print("\n".join(explain(record, store.version)), markup=False, soft_wrap=True)
    _draw_harm(compared, store)
    console.print(f"\n{seconds:.0f} s. Try next:", style="bold")
    for command in (
        f"heedful why {outcome.decision}{' --leave-one-out' if outcome.candidates else ''}",
        f'heedful ask "{compared.questions[0].question}" --bank demo',
        "heedful bank import my-notes.txt --bank mine",
    ):
        console.print(f"  {command}", markup=False, soft_wrap=True)


def _draw_harm(compared: "Comparison", store: "SqliteStore") -> None:
    console = result()
    scores = compared.entry_scores()
    if not scores:
        console.print("\nNo entry did harm this time.")
        return
    console.print("\n[bold]Entries that did harm[/bold] when memory was always in the prompt")
    for score in scores[:6]:
        entry = store.entry("demo", score.entry)
        tags = f" ({', '.join(entry.tags)})" if entry.tags else ""
        line = f"  {score.hurts} hurts, {score.helps} helps  {entry.id}{tags}: {entry.text}"
        console.print(line, markup=False, soft_wrap=True)
