"""`heedful bank build`: build a bank from the pool rows of a study."""

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from heedful.cli.options import Json, Workers, refuse_idle
from heedful.cli.output import counted, print_json, result, say
from heedful.cli.recording_progress import recording_progress
from heedful.cli.study import Data, Place, open_study, open_study_model

if TYPE_CHECKING:
    from heedful.experiments.bank_building import BankBuild
    from heedful.ports import Model


WriterUrl = Annotated[str | None, typer.Option(help="Endpoint of the model that writes rules.")]
WriterModel = Annotated[str | None, typer.Option(help="Name of that model at the endpoint.")]
WriterWeights = Annotated[
    str | None, typer.Option(help="Weights of an embedded writer [default: the study's model].")
]


FOR_RULES = ("budget", "writer_url", "writer_model", "writer_weights")


def build(
    context: typer.Context,
    place: Place,
    kind: Annotated[Literal["exemplars", "worked", "rules"], typer.Option(help="What to build.")],
    size: Annotated[int, typer.Option(min=1, help="Maximum number of entries.")] = 50,
    budget: Annotated[int, typer.Option(min=0, help="Maximum number of calls to the writer.")] = 200,
    writer_url: WriterUrl = None,
    writer_model: WriterModel = None,
    writer_weights: WriterWeights = None,
    out: Annotated[
        Path | None, typer.Option(help="Output file [default: KIND.jsonl in the study's folder].")
    ] = None,
    data: Data = None,
    workers: Workers = None,
    json: Json = False,
) -> None:
    """Build exemplars, or rules distilled from rollouts, from a study's pool; a second run resumes."""
    from heedful.cli.resources import open_minilm
    from heedful.experiments.bank_building import (
        build_exemplars,
        build_rules,
        build_worked,
        write_bank,
        write_responses,
    )

    if kind != "rules":
        refuse_idle(context, FOR_RULES, f"with --kind {kind}")
    if kind == "worked":
        refuse_idle(context, ("size",), "with --kind worked")
    space, setup = open_study(place, data, None)
    model = open_study_model(setup, workers)
    file = out or space.folder / f"{kind}.jsonl"
    with recording_progress() as tell:
        show_progress = partial(tell, "rollouts")
        embedder = open_minilm()
        if kind == "worked":
            worked, built = asyncio.run(build_worked(space, setup, model, embedder, show_progress))
            write_responses(file, worked)
            _show(built, len(worked), file, json)
            return
        if kind == "exemplars":
            built = asyncio.run(build_exemplars(space, setup, model, embedder, size, show_progress))
        else:
            writer = open_writer(model, writer_url, writer_model, writer_weights)
            built = asyncio.run(
                build_rules(space, setup, model, writer, embedder, size, budget, show_progress, _say_step)
            )
    write_bank(file, built)
    _show(built, len(built.entries), file, json)


def open_writer(model: "Model", url: str | None, name: str | None, weights: str | None) -> "Model":
    """The model that writes rules: an endpoint, other weights, or the study's own model."""
    from heedful.cli.resources import open_model
    from heedful.models.schemes import ModelOptions

    if url is not None:
        return open_model(ModelOptions(url=url, model=name or "", logprobs=False))
    return model if weights is None else open_model(ModelOptions(weights=weights))


def _say_step(number: int, groups: int, rules: int) -> None:
    if number % 10 == 0 or number == groups:
        say(f"distilling: {number} of {groups} tasks, {rules} rules")


def _show(built: "BankBuild", entries: int, file: Path, json: bool) -> None:
    if json:
        print_json(
            {
                "file": str(file),
                "entries": entries,
                "leaked": built.leaked,
                "rollouts": built.rollouts,
                "written": built.written,
                "nonsense": built.nonsense,
                "groups": built.groups,
            }
        )
        return
    lines = [f"{counted(entries, 'entry', 'entries')} written to {file}"]
    lines.append(f"  {built.leaked} left out because they match, or nearly match, a test question")
    lines.append(f"  {built.rollouts} calls for rollouts")
    if built.groups:
        nonsense = f", {built.nonsense} unusable replies" if built.nonsense else ""
        lines.append(f"  {built.written} calls to the writer for {built.groups} tasks{nonsense}")
    result().print("\n".join(lines), markup=False, soft_wrap=True)
