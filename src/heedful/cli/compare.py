"""`heedful compare`: one solver, several memories, the same problems."""

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.options import Json, ModelName, Threads, Url, Weights
from heedful.cli.output import print_json, result, say
from heedful.cli.recording_progress import recording_progress
from heedful.cli.study import Data

if TYPE_CHECKING:
    from heedful.experiments.compare import ComparisonResult
    from heedful.types import Entry


def compare(
    benchmark: Annotated[str, typer.Argument(help="Name of the benchmark, such as aime24.")],
    memory: Annotated[
        list[str],
        typer.Option("--memory", help="NAME=FILE of a memory; may be repeated. No memory always runs."),
    ],
    url: Url = None,
    model: ModelName = None,
    weights: Weights = "smollm2-135m",
    threads: Threads = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many problems [all].")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Longest answer [the benchmark's].")] = None,
    slots: Annotated[int, typer.Option(min=1, help="Problems at once.")] = 2,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds for one answer of an endpoint.")] = 1800,
    data: Data = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the ledger [results/compare-BENCHMARK].", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Ask a solver a benchmark's problems without memory and with each whole memory in its prompt."""
    from heedful.benchmarks import BENCHMARKS
    from heedful.benchmarks.items import data_folder
    from heedful.cli.resources import open_model
    from heedful.errors import UsageError
    from heedful.experiments.compare import ResizedBenchmark
    from heedful.experiments.compare import compare as run
    from heedful.models.options import ModelOptions

    if benchmark not in BENCHMARKS:
        raise UsageError(f"there is no benchmark {benchmark!r}; choose {', '.join(BENCHMARKS)}")
    memories = _read_memories(memory)
    chosen = BENCHMARKS[benchmark]
    folder = data_folder(data)
    items = chosen.load(folder, "test")[:limit]
    if chosen.load(folder, "fit"):
        say(f"these are test rows of {benchmark}: choose nothing on them; heedful study proves what helps")
    asked = chosen if max_tokens is None else ResizedBenchmark(inner=chosen, max_tokens=max_tokens)
    solver = open_model(
        ModelOptions(
            url=url or "",
            model=model or "",
            logprobs=False,
            timeout=timeout,
            slots=slots,
            weights=weights,
            threads=threads,
            context=8192,
        )
    )
    ledger = (out or Path("results") / f"compare-{benchmark}") / "ledger.jsonl"
    with recording_progress() as tell:
        told = partial(tell, f"asking {solver.traits.name}")
        found = asyncio.run(run(asked, items, memories, solver, ledger, slots, told))
    if json:
        rows = {one.memory: _fields(one) for one in found}
        print_json({"benchmark": benchmark, "model": solver.traits.name, "n": len(items), "memories": rows})
        return
    result().print(_table(benchmark, found), markup=False, soft_wrap=True)


def _read_memories(given: list[str]) -> dict[str, list["Entry"]]:
    from heedful.errors import UsageError
    from heedful.memory.formats import read_entries

    memories = {}
    for one in given:
        name, _, file = one.partition("=")
        if not name or not file or name == "none":
            raise UsageError(f"--memory {one!r} is not NAME=FILE")
        memories[name] = read_entries(Path(file))[0]
    return memories


def _table(benchmark: str, found: list["ComparisonResult"]) -> str:
    from heedful.report.phrases import p_value, plain, points
    from heedful.report.report_table import ReportTable, plain_text

    lines = [
        (
            one.memory,
            str(one.entries),
            f"{round(one.right.value * one.right.n)} of {one.right.n}",
            f"{one.right.low:.0%} to {one.right.high:.0%}",
            points(one.paired.delta),
            str(one.paired.helps),
            str(one.paired.hurts),
            p_value(one.p),
            plain(one.tokens, 0),
        )
        for one in found
    ]
    head = ("Memory", "Entries", "Right", "95% interval", "Points", "Helps", "Hurts", "p", "Tokens")
    table = ReportTable(name="compare", title=benchmark, note="", head=head, rows=tuple(lines))
    return plain_text(table)


def _fields(one: "ComparisonResult") -> dict[str, Any]:
    return {
        "entries": one.entries,
        "right": round(one.right.value * one.right.n),
        "low": one.right.low,
        "high": one.right.high,
        "helps": one.paired.helps,
        "hurts": one.paired.hurts,
        "mcnemar_p": one.p,
        "tokens_per_problem": one.tokens,
    }
