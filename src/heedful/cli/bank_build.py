"""`heedful bank build`: a bank from the rows that a study leaves to banks."""

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from heedful.cli.options import Json
from heedful.cli.output import print_json, result, say
from heedful.cli.recording_progress import recording_progress
from heedful.cli.study import Data, Place, open_study, open_study_model

if TYPE_CHECKING:
    from heedful.experiments.bank_building import BankBuild
    from heedful.ports import Model


WriterUrl = Annotated[str | None, typer.Option(help="Endpoint of the model that writes rules.")]
WriterModel = Annotated[str | None, typer.Option(help="Its name at the endpoint.")]
WriterWeights = Annotated[
    str | None, typer.Option(help="Weights of an embedded writer [default: the study's model].")
]


def build(
    place: Place,
    kind: Annotated[Literal["exemplars", "worked", "rules"], typer.Option(help="What to build.")],
    size: Annotated[int, typer.Option(min=1, help="At most this many entries.")] = 50,
    budget: Annotated[int, typer.Option(min=0, help="At most this many calls of the writer.")] = 200,
    writer_url: WriterUrl = None,
    writer_model: WriterModel = None,
    writer_weights: WriterWeights = None,
    out: Annotated[
        Path | None, typer.Option(help="File of the bank [default: KIND.jsonl in the study's folder].")
    ] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Build exemplars, or rules distilled from rollouts, from a study's pool; a second run goes on."""
    from heedful.cli.resources import open_minilm
    from heedful.experiments.bank_building import (
        build_exemplars,
        build_rules,
        build_worked,
        write_bank,
        write_responses,
    )

    space, setup = open_study(place, data, None)
    model = open_study_model(setup)
    file = out or space.folder / f"{kind}.jsonl"
    with recording_progress() as tell:
        told = partial(tell, "rollouts")
        embedder = open_minilm()
        if kind == "worked":
            worked, built = asyncio.run(build_worked(space, setup, model, embedder, told))
            write_responses(file, worked)
            _show(built, len(worked), file, json)
            return
        if kind == "exemplars":
            built = asyncio.run(build_exemplars(space, setup, model, embedder, size, told))
        else:
            writer = open_writer(model, writer_url, writer_model, writer_weights)
            built = asyncio.run(
                build_rules(space, setup, model, writer, embedder, size, budget, told, _say_step)
            )
    write_bank(file, built)
    _show(built, len(built.entries), file, json)


def open_writer(model: "Model", url: str | None, name: str | None, weights: str | None) -> "Model":
    """The model that writes: an endpoint, other weights, or the study's own model."""
    from heedful.cli.resources import open_model
    from heedful.models.options import ModelOptions

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
    said = [f"{entries} entries written to {file}"]
    said.append(f"  {built.leaked} left out because they are on the test side, or nearly")
    said.append(f"  {built.rollouts} calls for rollouts")
    if built.groups:
        nonsense = f", {built.nonsense} replies made no sense" if built.nonsense else ""
        said.append(f"  {built.written} calls of the writer on {built.groups} tasks to learn from{nonsense}")
    result().print("\n".join(said), markup=False, soft_wrap=True)
