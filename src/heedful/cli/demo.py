"""`heedful demo`: a three-minute study of a fictional company."""

import asyncio
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import Json, Store, Threads
from heedful.cli.output import print_json, result
from heedful.cli.recording_progress import recording_progress
from heedful.extras import require

if TYPE_CHECKING:
    from heedful.demo.run import DemoResult
    from heedful.memory.storage import Storage
    from heedful.ports import Model
    from heedful.types import Outcome

TITLES = {"never": "no memory", "always": "always retrieve", "heedful": "heedful"}
SIDES = {"fit": "practice questions", "test": "test questions"}


def demo(
    limit: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of test questions.", show_default="all")
    ] = None,
    threads: Threads = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Run a small study of a fictional company: no memory, always memory, and heedful."""
    from heedful.cli.resources import open_model, pull_weights
    from heedful.demo.scenario import entries
    from heedful.memory.database import default_path
    from heedful.memory.postgres.address import is_postgres
    from heedful.memory.storage import open_storage
    from heedful.models.schemes import ModelOptions

    require("embedded", "study")
    start = time.perf_counter()
    model = open_model(ModelOptions(threads=threads))
    pull_weights("all-minilm-l6-v2")
    opened = open_storage(store)
    asyncio.run(opened.put("demo", entries()))
    home = default_path() if is_postgres(opened.location) else Path(opened.location)
    folder = home.parent / "demo-study"
    shown, outcome = asyncio.run(_run(model, opened, folder, limit))
    seconds = time.perf_counter() - start
    if json:
        scores = {arm: asdict(shown.score(arm)) for arm in TITLES}
        harm = [asdict(entry) for entry in shown.entry_scores()]
        numbers = {"arms": scores, "seconds": seconds, "harmful_entries": harm}
        print_json({**numbers, "decision": outcome.decision, "study": str(folder)})
        return
    _draw(shown, outcome, opened)
    _draw_next(shown, outcome, folder, seconds)


async def _run(
    model: "Model", store: "Storage", folder: Path, limit: int | None
) -> tuple["DemoResult", "Outcome"]:
    from heedful.demo.run import run_demo

    with recording_progress() as tell:
        shown = await run_demo(folder, model, limit, lambda side, progress: tell(SIDES[side], progress))
    return shown, await shown.answer(shown.telling(), model, store.journal)


def _draw(shown: "DemoResult", outcome: "Outcome", store: "Storage") -> None:
    from rich.table import Table

    from heedful.explain import entry_texts, explain
    from heedful.stats.intervals import wilson

    console = result()
    table = Table(box=None, pad_edge=False, title_justify="left")
    for heading in ("", "right", "95% interval", "helps", "hurts", "calls per question"):
        table.add_column(heading, justify="left" if not heading else "right")
    for arm, title in TITLES.items():
        score = shown.score(arm)
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
    fitted = len(shown.setup.splits.fit)
    console.print(
        "\nhelps: wrong without memory, right in the end; hurts: right without memory, wrong in the end."
        f"\nThe policy was chosen on {fitted} other questions and locked before these were asked.",
        style="dim",
    )
    always = shown.always_answer(shown.telling())
    console.print("\nOne decision", style="bold", end="")
    console.print(f" (with memory always in the prompt: {always!r})", markup=False, soft_wrap=True)
    decision = asyncio.run(store.journal.find(outcome.decision))
    texts = asyncio.run(entry_texts(decision, store))
    console.print("\n".join(explain(decision, texts)), markup=False, soft_wrap=True)
    _draw_harm(shown, store)


def _draw_harm(shown: "DemoResult", store: "Storage") -> None:
    console = result()
    scores = shown.entry_scores()
    if not scores:
        console.print("\nNo entry did harm in this run.")
        return
    console.print("\n[bold]Entries that did harm[/bold] when memory was always in the prompt")
    for score in scores[:6]:
        entry = asyncio.run(store.entry("demo", score.entry))
        tags = f" ({', '.join(entry.tags)})" if entry.tags else ""
        line = f"  {score.hurts} hurts, {score.helps} helps  {entry.id}{tags}: {entry.text}"
        console.print(line, markup=False, soft_wrap=True)


def _draw_next(shown: "DemoResult", outcome: "Outcome", folder: Path, seconds: float) -> None:
    console = result()
    console.print(f"\n{seconds:.0f} s. Try next:", style="bold")
    for command in (
        f"heedful study report {folder}",
        f"heedful why {outcome.decision}{' --leave-one-out' if outcome.candidates else ''}",
        f'heedful ask "{shown.questions[0].question}" --bank demo',
        "heedful bank import my-notes.txt --bank mine",
    ):
        console.print(f"  {command}", markup=False, soft_wrap=True)
