"""`heedful compare`: compare memories with the same solver and the same problems."""

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.options import Json, ModelName, Threads, Url, Weights, refuse_idle_model_options
from heedful.cli.output import print_json, result, say
from heedful.cli.recording_progress import recording_progress
from heedful.cli.study import Data

if TYPE_CHECKING:
    from heedful.experiments.compare import ComparisonResult
    from heedful.types import Entry


def compare(
    context: typer.Context,
    benchmark: Annotated[str, typer.Argument(help="Name of the benchmark, such as aime24.")],
    memory: Annotated[
        list[str],
        typer.Option("--memory", help="NAME=FILE of a memory; may be repeated. `none` always runs too."),
    ],
    url: Url = None,
    model: ModelName = None,
    weights: Weights = "smollm2-135m",
    threads: Threads = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Ask only the first N problems [default: all].")
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum length of an answer in tokens [default: the benchmark's]."),
    ] = None,
    slots: Annotated[int, typer.Option(min=1, help="Number of concurrent requests.")] = 2,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds per answer of an endpoint.")] = 1800,
    data: Data = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the ledger [default: results/compare-BENCHMARK].", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Ask a solver a benchmark's problems without memory and with each complete memory in the prompt."""
    from heedful.benchmarks import BENCHMARKS
    from heedful.benchmarks.items import data_folder
    from heedful.cli.resources import open_model
    from heedful.errors import UsageError
    from heedful.experiments.compare import ResizedBenchmark
    from heedful.experiments.compare import compare as run
    from heedful.models.schemes import ModelOptions

    refuse_idle_model_options(context, url)
    if benchmark not in BENCHMARKS:
        raise UsageError(f"unknown benchmark {benchmark!r}; choose {', '.join(BENCHMARKS)}")
    memories = _read_memories(memory)
    chosen = BENCHMARKS[benchmark]
    folder = data_folder(data)
    items = chosen.load(folder, "test")[:limit]
    if chosen.load(folder, "fit"):
        say(
            f"these are test rows of {benchmark}: do not choose a memory by this result; "
            "use heedful study to prove that a memory helps"
        )
    resized = chosen if max_tokens is None else ResizedBenchmark(inner=chosen, max_tokens=max_tokens)
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
        show_progress = partial(tell, f"asking {solver.traits.name}")
        results = asyncio.run(run(resized, items, memories, solver, ledger, slots, show_progress))
    if json:
        rows = {memory_result.memory: _fields(memory_result) for memory_result in results}
        print_json({"benchmark": benchmark, "model": solver.traits.name, "n": len(items), "memories": rows})
        return
    result().print(_table(benchmark, results), markup=False, soft_wrap=True)


def _read_memories(options: list[str]) -> dict[str, list["Entry"]]:
    from heedful.errors import UsageError
    from heedful.memory.formats import read_entries

    memories = {}
    for option in options:
        name, _, file = option.partition("=")
        if not name or not file or name == "none":
            raise UsageError(f"--memory {option!r} is not NAME=FILE with a NAME other than none")
        memories[name] = read_entries(Path(file))[0]
    return memories


def _table(benchmark: str, results: list["ComparisonResult"]) -> str:
    from heedful.report.phrases import p_value, plain, points
    from heedful.report.report_table import ReportTable, plain_text

    lines = [
        (
            row.memory,
            str(row.entries),
            f"{round(row.right.value * row.right.n)} of {row.right.n}",
            f"{row.right.low:.0%} to {row.right.high:.0%}",
            points(row.paired.delta),
            str(row.paired.helps),
            str(row.paired.hurts),
            p_value(row.p),
            plain(row.tokens, 0),
        )
        for row in results
    ]
    head = ("Memory", "Entries", "Right", "95% interval", "Points", "Helps", "Hurts", "p", "Tokens")
    table = ReportTable(name="compare", title=benchmark, note="", head=head, rows=tuple(lines))
    return plain_text(table)


def _fields(row: "ComparisonResult") -> dict[str, Any]:
    return {
        "entries": row.entries,
        "right": round(row.right.value * row.right.n),
        "low": row.right.low,
        "high": row.right.high,
        "helps": row.paired.helps,
        "hurts": row.paired.hurts,
        "mcnemar_p": row.p,
        "tokens_per_problem": row.tokens,
    }
