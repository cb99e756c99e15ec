"""`heedful study`: from a study file to a locked policy and a report."""

import asyncio
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import Json, Workers
from heedful.cli.output import counted, print_json, result, say
from heedful.cli.recording_progress import recording_progress
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.ports import Model
    from heedful.protocol.crossfit_file import Crossfit
    from heedful.protocol.fit_result import FitResult
    from heedful.protocol.lock import Lock
    from heedful.protocol.setup import StudySetup
    from heedful.protocol.workspace import Workspace

app = typer.Typer(
    help="Test on locked data whether memory helps.", no_args_is_help=True, rich_markup_mode=None
)

Place = Annotated[Path, typer.Argument(help="A study file or the folder of a study.", metavar="STUDY")]
Data = Annotated[Path | None, typer.Option(envvar="HEEDFUL_DATA", help="Folder of the benchmark data.")]
Out = Annotated[
    Path | None, typer.Option(help="Folder of the study [default: results/NAME].", show_default=False)
]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="Decode failed passes again.", show_default=False)
]


@app.command()
def run(
    place: Place,
    data: Data = None,
    out: Out = None,
    retry_failed: RetryFailed = False,
    workers: Workers = None,
    json: Json = False,
) -> None:
    """Run the whole study: record the fit side, fit, lock, record the test side, report."""
    space, setup = open_study(place, data, out)
    model = open_study_model(setup, workers)
    if not space.lock.exists():
        _record(space, setup, model, retry_failed)
        _warn(space, setup)
        _fit(space, setup)
        _lock(space, setup, model)
    else:
        say(f"{space.lock} exists: continuing with the locked study")
    _test(space, setup, model, retry_failed)
    _report(space, json)


@app.command()
def record(
    place: Place,
    data: Data = None,
    out: Out = None,
    retry_failed: RetryFailed = False,
    workers: Workers = None,
    json: Json = False,
) -> None:
    """Decode the fit-side passes that are missing from the ledger."""
    space, setup = open_study(place, data, out)
    _record(space, setup, open_study_model(setup, workers), retry_failed)
    _status(space, setup, json)


@app.command()
def fit(place: Place, data: Data = None, out: Out = None, json: Json = False) -> None:
    """Choose a policy on the fit side."""
    space, setup = open_study(place, data, out)
    fitted = _fit(space, setup)
    if json:
        from heedful.protocol.fit_result import to_fields

        print_json(to_fields(fitted))
        return
    from heedful.cli.study_text import fitted_lines

    result().print("\n".join(fitted_lines(fitted)), markup=False, soft_wrap=True)


@app.command()
def lock(place: Place, data: Data = None, out: Out = None, json: Json = False) -> None:
    """Lock policy, banks, data, prompts, model and code before the test side is opened."""
    space, setup = open_study(place, data, out)
    locked = _lock(space, setup, open_study_model(setup))
    if json:
        from heedful.protocol.lock import lock_fields

        print_json(lock_fields(locked))
        return
    result().print(f"locked: {space.lock}", markup=False, soft_wrap=True)


@app.command("test")
def open_test(
    place: Place,
    data: Data = None,
    out: Out = None,
    retry_failed: RetryFailed = False,
    workers: Workers = None,
    json: Json = False,
) -> None:
    """Verify the lock, open the test side, record it and evaluate."""
    space, setup = open_study(place, data, out)
    _test(space, setup, open_study_model(setup, workers), retry_failed)
    _report(space, json)


@app.command()
def verify(place: Place, data: Data = None, out: Out = None, json: Json = False) -> None:
    """Check that nothing changed since the lock; otherwise exit 4 and name what changed."""
    from heedful.protocol.study_model import study_model
    from heedful.protocol.workflow import verify_lock

    space, setup = open_study(place, data, out)
    locked = asyncio.run(verify_lock(space, setup, study_model(setup.study.model)))
    if json:
        print_json({"study": locked.study, "lock": locked.lock, "moved": []})
        return
    result().print(f"nothing changed since {locked.locked_at}: lock {locked.lock[:12]} holds")


@app.command()
def status(place: Place, data: Data = None, out: Out = None, json: Json = False) -> None:
    """Show a study's progress: recorded passes, fit, lock, openings of the test side, time left."""
    space, setup = open_study(place, data, out)
    _status(space, setup, json)


@app.command()
def crossfit(
    place: Annotated[Path, typer.Argument(help="The folder of a tested study.", metavar="STUDY")],
    data: Data = None,
    folds: Annotated[int, typer.Option(min=2, help="Number of folds.")] = 5,
    json: Json = False,
) -> None:
    """Repeat the choice of a policy over folds of all rows; no policy judges a row that it was fitted on."""
    from heedful.extras import require
    from heedful.protocol.crossfit_file import crossfit_fields
    from heedful.protocol.workspace import open_workspace

    require("study")
    space = open_workspace(place, None)
    found = _crossfit(space, data, folds)
    if json:
        print_json(crossfit_fields(found))
        return
    from heedful.report.crossfit_table import folds_table
    from heedful.report.report_table import plain_text

    result().print(plain_text(folds_table(found, {})), markup=False, soft_wrap=True)
    say(f"written: {space.crossfit}; heedful study report shows it beside the locked test")


@app.command()
def report(
    place: Place,
    texts: Annotated[
        bool,
        typer.Option(
            "--texts/--no-texts",
            help="Show your own questions, answers and entries; leave them out of a folder to publish.",
        ),
    ] = True,
    json: Json = False,
) -> None:
    """Rebuild the report from ledger and lock: HTML, Markdown, LaTeX and JSON."""
    from heedful.protocol.workspace import open_workspace

    _report(open_workspace(place, None), json, texts=texts)


@app.command()
def export(
    place: Place,
    to: Annotated[Path, typer.Option(help="The bundle's file, for example mine.policy.")],
    data: Data = None,
    json: Json = False,
) -> None:
    """Write the locked policy with its settings and banks to one file, for `heedful ask --policy`."""
    from heedful.protocol.bundle import bundle_fields, write_bundle
    from heedful.protocol.export import export_study
    from heedful.protocol.workspace import open_workspace

    bundle = export_study(open_workspace(place, None), data)
    write_bundle(to, bundle)
    entries = {name: len(source.entries) for name, source in bundle.sources.items()}
    if json:
        digest = bundle_fields(bundle)["digest"]
        print_json({"study": bundle.study, "file": str(to), "digest": digest, "entries": entries})
        return
    listed = ", ".join(f"{name} ({counted(count, 'entry', 'entries')})" for name, count in entries.items())
    result().print(
        f"{bundle.study}: policy and {listed or 'no bank'} written to {to}", markup=False, soft_wrap=True
    )


@app.command("pack")
def pack_files(
    folder: Annotated[Path, typer.Argument(help="The folder of a study.", metavar="DIR")], json: Json = False
) -> None:
    """Compress the recorded passes or episodes of a study, and drop files that its lock repeats."""
    from heedful.protocol.line_file import pack_below
    from heedful.protocol.lock import drop_fit
    from heedful.protocol.workspace import Workspace

    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder: name the folder of a study")
    sizes = pack_below(folder, ("ledger.jsonl", "episodes.jsonl"))
    space = Workspace(folder)
    if dropped := drop_fit(space):
        sizes[space.fit] = (dropped, 0)
    before, after = (sum(pair[which] for pair in sizes.values()) for which in (0, 1))
    if json:
        print_json({"files": [str(path) for path in sizes], "before": before, "after": after})
        return
    files = f"{counted(len(sizes), 'file')} packed or dropped"
    result().print(f"{files}: {before / 1e6:.1f} MB before, {after / 1e6:.1f} MB after", markup=False)


def open_study(place: Path, data: Path | None, out: Path | None) -> tuple["Workspace", "StudySetup"]:
    from heedful.extras import require
    from heedful.protocol.setup import prepare
    from heedful.protocol.workspace import open_workspace

    require("study")
    space = open_workspace(place, out)
    return space, prepare(space.study, data)


def open_study_model(setup: "StudySetup", workers: str | None = None) -> "Model":
    """The study's model or its workers; missing weights for decoding, grading and recall are pulled."""
    from heedful.protocol.workers import recording_model

    pull_study_weights(setup)
    return recording_model(setup.study.model, workers)


def pull_study_weights(setup: "StudySetup") -> None:
    from heedful.cli.resources import pull_weights
    from heedful.extras import require
    from heedful.models.catalogue import CATALOGUE

    if any(bank.method != "bm25" for bank in setup.banks.values()):
        require("embedded", instead='recall = "bm25" in each [sources.NAME] needs no extra')
        pull_weights("all-minilm-l6-v2")
    judge = setup.study.questions.judge if setup.study.questions else None
    for settings in (setup.study.model, *([] if judge is None else [judge])):
        if not settings.url and settings.weights in CATALOGUE:
            pull_weights(settings.weights)


def _record(space: "Workspace", setup: "StudySetup", model: "Model", retry_failed: bool) -> None:
    from heedful.protocol.workflow import record

    _say_damage(space, setup)
    with recording_progress() as tell:
        show = partial(tell, "recording fit")
        asyncio.run(record(space, setup, model, "fit", show, retry_failed=retry_failed))


def _warn(space: "Workspace", setup: "StudySetup") -> None:
    """Say before the test side is opened if the grades look wrong."""
    from heedful.protocol.grading_check import warning_lines
    from heedful.protocol.status import grading_warnings

    for warning in grading_warnings(space, setup):
        for line in warning_lines(warning):
            say(f"heedful: {line}")


def _test(space: "Workspace", setup: "StudySetup", model: "Model", retry_failed: bool) -> None:
    from heedful.protocol.workflow import open_test_side

    _say_damage(space, setup)
    with recording_progress() as tell:
        show = partial(tell, "recording test")
        asyncio.run(open_test_side(space, setup, model, show, retry_failed=retry_failed))


def _say_damage(space: "Workspace", setup: "StudySetup") -> None:
    from heedful.cli.study_text import damage_line
    from heedful.protocol.status import status_of

    for damage in status_of(space, setup).damaged_rows:
        say(damage_line(damage.line, damage.problem))


def _fit(space: "Workspace", setup: "StudySetup") -> "FitResult":
    from heedful.protocol.cluster_file import read_clusters
    from heedful.protocol.workflow import fit_study

    say("choosing a policy on the fit side …")
    fitted = fit_study(space, setup)
    if read_clusters(space).near is None:
        say(
            "only repeated questions were searched for; to find near-duplicates too, run heedful weights "
            "pull all-minilm-l6-v2 before recording a study"
        )
    return fitted


def _lock(space: "Workspace", setup: "StudySetup", model: "Model") -> "Lock":
    from heedful.protocol.workflow import lock_study

    return asyncio.run(lock_study(space, setup, model))


def _crossfit(space: "Workspace", data: Path | None, folds: int) -> "Crossfit":
    from heedful.evaluation.study_data import read_study_data
    from heedful.protocol.cluster_file import write_clusters
    from heedful.protocol.crossfit import join_sides
    from heedful.protocol.crossfit_file import crossfit_study
    from heedful.protocol.setup import prepare
    from heedful.protocol.study import read_study

    tested = read_study_data(space)
    if not space.clusters.exists():  # a lock from before there were clusters
        write_clusters(space, prepare(space.study, data))
        tested = read_study_data(space)
    table = join_sides({"fit": tested.fit.table, "test": tested.test.table}, tested.repeats)

    def show(done: int, total: int) -> None:
        say(f"fold {done} of {total}")

    return crossfit_study(space, tested.lock, table, read_study(space.study).fit, folds, show)


def _report(space: "Workspace", json: bool, *, texts: bool = True) -> None:
    from heedful.report.write import write_report

    report = write_report(space, texts=texts)
    if json:
        print_json(report.summary)
        return
    result().print(report.text, markup=False, soft_wrap=True)
    say(f"full report: {space.folder / 'report.html'}")


def _status(space: "Workspace", setup: "StudySetup", json: bool) -> None:
    from heedful.protocol.status import status_of

    status = status_of(space, setup)
    if json:
        print_json(asdict(status))
        return
    from heedful.cli.study_text import status_lines

    result().print("\n".join(status_lines(status)), markup=False, soft_wrap=True)
