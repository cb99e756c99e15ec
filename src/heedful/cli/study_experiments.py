"""`heedful study refine`, `credit` and so on: experiments on the banks of a study."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from heedful.cli.bank_build import WriterModel, WriterUrl, WriterWeights
from heedful.cli.options import Json, Workers, refuse_idle
from heedful.cli.output import print_json, result, say
from heedful.cli.recording_progress import recording_progress
from heedful.cli.study import Data, Place, open_study, open_study_model
from heedful.types import Side

if TYPE_CHECKING:
    from heedful.experiments.variant import Experiment
    from heedful.report.pages.experiment_page import ExperimentPage

SourceName = Annotated[
    str | None, typer.Option("--source", help="The source whose bank to examine [default: the only one].")
]
AskedSide = Annotated[
    Side, typer.Option("--side", help="Side to use; the test side only after heedful study test.")
]
Rows = Annotated[
    int | None,
    typer.Option("--rows", min=1, help="Maximum number of tasks, sampled with the seed [default: all]."),
]
IDLE = ("data", "json", "workers")
"""Options that do not affect a result."""
Seed = Annotated[int, typer.Option("--seed", help="Random seed.")]


def add_to(app: typer.Typer) -> None:
    """Add these commands to `heedful study`."""
    app.command()(refine)
    app.command()(credit)
    app.command()(counterfactual)
    app.command()(controls)
    app.command()(sensitivity)


def refine(
    context: typer.Context,
    place: Place,
    source: SourceName = None,
    iterations: Annotated[int, typer.Option(min=1, help="Maximum number of rounds.")] = 2,
    rule: Annotated[
        Literal["betting", "hoeffding", "hoeffding-paper"],
        typer.Option(help="The rule that condemns an entry."),
    ] = "betting",
    confidence: Annotated[float, typer.Option(help="Confidence level of the rule.")] = 0.95,
    max_share: Annotated[
        float, typer.Option(help="Maximum share of the bank to retire in one round.")
    ] = 0.25,
    replace: Annotated[
        bool, typer.Option("--replace", help="Let a writer replace retired entries with better rules.")
    ] = False,
    writer_url: WriterUrl = None,
    writer_model: WriterModel = None,
    writer_weights: WriterWeights = None,
    workers: Workers = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Refine a bank before the lock: evidence, retirement, replacement, and recording of changed passes."""
    from heedful.cli.bank_build import open_writer
    from heedful.cli.resources import open_minilm
    from heedful.experiments.refine import RefineResult, Writer, bank_label
    from heedful.experiments.refine import refine as run
    from heedful.governance.terms import RetirementTerms
    from heedful.report.pages.refine_page import refine_page

    if not replace:
        refuse_idle(context, ("writer_url", "writer_model", "writer_weights"), "without --replace")
    terms = RetirementTerms(rule=rule, confidence=confidence, max_share=max_share)
    with open_experiment("refine", place, data, workers, source) as experiment:
        writer = None
        if replace:
            model = open_writer(experiment.model, writer_url, writer_model, writer_weights)
            writer = Writer(model=model, embedder=open_minilm())
        # named by its initial bank: a later run starts from another one
        name = f"{experiment.source}-{bank_label(experiment.setup, experiment.source, experiment.entries)}"

        pages: list[_WrittenPage] = []

        def write(refined: RefineResult) -> None:
            pages.append(_write(context, experiment, refine_page(experiment.setup.study.name, refined), name))

        asyncio.run(run(experiment, terms, iterations, writer, write))
    _print(pages[0], json)


def credit(
    context: typer.Context,
    place: Place,
    source: SourceName = None,
    side: AskedSide = "fit",
    workers: Workers = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Leave out each recalled entry in turn and report which entries the outcome depends on."""
    from heedful.experiments.entry_credit import credit as run
    from heedful.report.pages.credit_page import credit_page

    with open_experiment("credit", place, data, workers, source, side) as experiment:
        credited = asyncio.run(run(experiment))
    _show(context, experiment, credit_page(experiment.setup.study.name, credited), json)


def counterfactual(
    context: typer.Context,
    place: Place,
    source: SourceName = None,
    edits: Annotated[
        Path | None,
        typer.Option("--edits", help="JSON lines with entry, repair, corrupt [default: generated]."),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Number of entries to edit if generated.")] = 8,
    rows: Rows = None,
    side: AskedSide = "fit",
    seed: Seed = 0,
    workers: Workers = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Repair and corrupt entries, with free or fixed recalls, to measure the value of their content."""
    from heedful.experiments.counterfactual import counterfactual as run
    from heedful.experiments.edits import read_edits
    from heedful.report.pages.counterfactual_page import counterfactual_page

    if edits is not None:
        refuse_idle(context, ("count",), "with --edits")
    with open_experiment("counterfactual", place, data, workers, source, side, rows, seed) as experiment:
        given = count if edits is None else read_edits(edits, experiment.entries, seed)
        found = asyncio.run(run(experiment, given))
    _show(context, experiment, counterfactual_page(experiment.setup.study.name, found), json)


def controls(
    context: typer.Context,
    place: Place,
    source: SourceName = None,
    rate: Annotated[
        list[float] | None,
        typer.Option("--rate", help="Share of bad entries; may be repeated [default: 0.3]."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Kind of bad entries; may be repeated [default: all]."),
    ] = None,
    rows: Rows = None,
    side: AskedSide = "fit",
    seed: Seed = 0,
    workers: Workers = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Mix bad entries into a bank; report their effect under each arm and how soon they are retired."""
    from heedful.experiments.controls import controls as run
    from heedful.governance.poison import KINDS
    from heedful.report.pages.controls_page import controls_page

    with open_experiment("controls", place, data, workers, source, side, rows, seed) as experiment:
        found = asyncio.run(run(experiment, sorted(rate or [0.3]), kind or list(KINDS)))
    _show(
        context, experiment, controls_page(experiment.setup.study.name, experiment.source, side, found), json
    )


def sensitivity(
    context: typer.Context,
    place: Place,
    source: SourceName = None,
    size: Annotated[
        list[float] | None,
        typer.Option("--size", help="Share of the bank; may be repeated [default: 0.25 0.5 1]."),
    ] = None,
    noise: Annotated[
        list[float] | None,
        typer.Option("--noise", help="Share of bad entries; may be repeated [default: 0.1 0.3]."),
    ] = None,
    built: Annotated[
        list[Path] | None,
        typer.Option("--built", help="A bank from heedful bank build to use instead; may be repeated."),
    ] = None,
    rows: Rows = None,
    side: AskedSide = "fit",
    seed: Seed = 0,
    workers: Workers = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Vary a bank's size, noise and construction, and report accuracy, harm and cost."""
    from heedful.errors import UsageError
    from heedful.experiments.sensitivity import sensitivity as run
    from heedful.report.pages.sensitivity_page import sensitivity_page

    sizes, noises = size or [0.25, 0.5, 1.0], noise or [0.1, 0.3]
    if not all(0 < share <= 1 for share in sizes) or not all(0 < share < 1 for share in noises):
        raise UsageError("--size must be above 0 and at most 1, and --noise between 0 and 1")
    with open_experiment("sensitivity", place, data, workers, source, side, rows, seed) as experiment:
        found = asyncio.run(run(experiment, sizes, noises, built or []))
    _show(
        context,
        experiment,
        sensitivity_page(experiment.setup.study.name, experiment.source, side, found),
        json,
    )


@contextmanager
def open_experiment(
    name: str,
    place: Path,
    data: Path | None,
    workers: str | None,
    source: str | None,
    side: Side = "fit",
    rows: int | None = None,
    seed: int = 0,
) -> Iterator["Experiment"]:
    """An experiment on a study's bank, with its progress shown."""
    from heedful.experiments.variant import Experiment, bank_source

    space, setup = open_study(place, data, None)
    wanted = bank_source(setup, source)
    model = open_study_model(setup, workers)
    with recording_progress() as tell:
        yield Experiment(
            name=name,
            space=space,
            setup=setup,
            model=model,
            source=wanted,
            tell=tell,
            side=side,
            rows=rows,
            seed=seed,
        )


class _WrittenPage(NamedTuple):
    file: Path
    text: str
    summary: dict[str, Any]


def _write(
    context: typer.Context, experiment: "Experiment", page: "ExperimentPage", name: str | None = None
) -> _WrittenPage:
    """Write the page; its default name is that of the source and the side."""
    from heedful.report.pages.experiment_page import write_page

    file = (
        experiment.space.folder / experiment.name / f"{name or f'{experiment.source}-{experiment.side}'}.html"
    )
    origin = experiment.origin(_command(context, experiment.setup.study.name))
    return _WrittenPage(file, page.text, write_page(file, page, origin))


def _show(context: typer.Context, experiment: "Experiment", page: "ExperimentPage", json: bool) -> None:
    _print(_write(context, experiment, page), json)


def _print(page: _WrittenPage, json: bool) -> None:
    if json:
        print_json(page.summary)
        return
    result().print(page.text, markup=False, soft_wrap=True)
    say(f"full page: {page.file}")


def _command(context: typer.Context, study: str) -> str:
    """The running command, with the study's name and without options that do not affect its result."""
    words = ["heedful study", str(context.info_name), study]
    for option in context.command.params:
        value = context.params.get(str(option.name))
        if option.param_type_name != "option" or option.name in IDLE or value == option.default:
            continue
        for single in value if isinstance(value, list | tuple) else [value]:
            text = single.name if isinstance(single, Path) else str(single)
            words.append(option.opts[0] if single is True else f"{option.opts[0]} {text}")
    return " ".join(words)
