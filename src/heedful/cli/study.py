"""`heedful study`: from a study file to a locked policy to a report."""

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.bars import recording_bars
from heedful.cli.options import Json
from heedful.cli.output import print_json, result, say
from heedful.types import Side

if TYPE_CHECKING:
    from heedful.ports import Model
    from heedful.protocol.setting import Setting
    from heedful.protocol.workspace import Workspace

app = typer.Typer(
    help="Prove on locked data whether memory helps.", no_args_is_help=True, rich_markup_mode=None
)

Place = Annotated[Path, typer.Argument(help="The study file, or the folder of a study.", metavar="STUDY")]
Data = Annotated[Path | None, typer.Option(envvar="HEEDFUL_DATA", help="Folder of the benchmark data.")]
Out = Annotated[
    Path | None, typer.Option(help="Folder of the study [default: results/NAME].", show_default=False)
]


@app.command()
def run(place: Place, data: Data = None, out: Out = None, json: Json = False) -> None:
    """Do all of it: record the fit side, fit, lock, record the test side, report."""
    space, setting = open_study(place, data, out)
    model = open_study_model(setting)
    if not space.lock.exists():
        _record(space, setting, model, "fit")
        _fit(space, setting)
        _lock(space, setting, model)
    else:
        say(f"{space.lock} exists: going on with the locked study")
    _test(space, setting, model)
    _report(space, json)


@app.command()
def record(place: Place, data: Data = None, out: Out = None, json: Json = False) -> None:
    """Decode the passes of the fit side that the ledger does not hold yet."""
    space, setting = open_study(place, data, out)
    _record(space, setting, open_study_model(setting), "fit")
    _status(space, setting, json)


@app.command()
def fit(place: Place, data: Data = None, out: Out = None, json: Json = False) -> None:
    """Choose a policy from the fit side."""
    space, setting = open_study(place, data, out)
    fitted = _fit(space, setting)
    if json:
        print_json(fitted)
        return
    from heedful.cli.study_text import fitted_lines

    result().print("\n".join(fitted_lines(fitted)), markup=False, soft_wrap=True)


@app.command()
def lock(place: Place, data: Data = None, out: Out = None, json: Json = False) -> None:
    """Fix policy, banks, data, prompts, model and code before the test side is opened."""
    space, setting = open_study(place, data, out)
    locked = _lock(space, setting, open_study_model(setting))
    if json:
        print_json(locked)
        return
    result().print(f"locked: {space.lock}", markup=False, soft_wrap=True)


@app.command("test")
def open_test(place: Place, data: Data = None, out: Out = None, json: Json = False) -> None:
    """Verify the lock, open the test side, record it and evaluate."""
    space, setting = open_study(place, data, out)
    _test(space, setting, open_study_model(setting))
    _report(space, json)


@app.command()
def verify(place: Place, data: Data = None, out: Out = None, json: Json = False) -> None:
    """Check that nothing moved since the lock was made; exit 4 names what did."""
    from heedful.protocol.steps import verify_lock

    space, setting = open_study(place, data, out)
    locked = asyncio.run(verify_lock(space, setting, open_study_model(setting)))
    if json:
        print_json({"study": locked["study"], "lock": locked["lock"], "moved": []})
        return
    result().print(f"nothing moved since {locked['locked_at']}: lock {locked['lock'][:12]} holds")


@app.command()
def status(place: Place, data: Data = None, out: Out = None, json: Json = False) -> None:
    """Show how far a study is: passes recorded, fit, lock, openings of the test side, time left."""
    space, setting = open_study(place, data, out)
    _status(space, setting, json)


@app.command()
def report(place: Place, json: Json = False) -> None:
    """Write the report again from ledger and lock: HTML, Markdown, LaTeX and JSON."""
    from heedful.protocol.workspace import open_workspace

    _report(open_workspace(place, None), json)


def open_study(place: Path, data: Path | None, out: Path | None) -> tuple["Workspace", "Setting"]:
    from heedful.extras import require
    from heedful.protocol.setting import prepare
    from heedful.protocol.workspace import open_workspace

    require("study")
    space = open_workspace(place, out)
    setting = prepare(space.study, data)
    if any(bank.method != "bm25" for bank in setting.banks.values()):
        from heedful.cli.opening import pull_weights

        pull_weights("all-minilm-l6-v2")
    return space, setting


def open_study_model(setting: "Setting") -> "Model":
    from heedful.cli.opening import pull_weights
    from heedful.models.catalogue import CATALOGUE
    from heedful.protocol.models import study_model

    settings = setting.study.model
    if not settings.url and settings.weights in CATALOGUE:
        pull_weights(settings.weights)
    return study_model(settings)


def _record(space: "Workspace", setting: "Setting", model: "Model", side: Side) -> None:
    from heedful.protocol.steps import record

    _tell_damage(space)
    with recording_bars() as tell:
        asyncio.run(record(space, setting, model, side, partial(tell, f"recording {side}")))


def _test(space: "Workspace", setting: "Setting", model: "Model") -> None:
    from heedful.protocol.steps import open_test_side

    _tell_damage(space)
    with recording_bars() as tell:
        asyncio.run(open_test_side(space, setting, model, partial(tell, "recording test")))


def _tell_damage(space: "Workspace") -> None:
    from heedful.cli.study_text import damage_line
    from heedful.protocol.ledger import Ledger

    for damage in Ledger(space.ledger).damage:
        say(damage_line(damage.line, damage.problem))


def _fit(space: "Workspace", setting: "Setting") -> dict[str, Any]:
    from heedful.protocol.steps import fit_study

    say("choosing a policy on the fit side …")
    return fit_study(space, setting)


def _lock(space: "Workspace", setting: "Setting", model: "Model") -> dict[str, Any]:
    from heedful.protocol.steps import lock_study

    return asyncio.run(lock_study(space, setting, model))


def _report(space: "Workspace", json: bool) -> None:
    from heedful.report.build import build_report

    found = build_report(space)
    if json:
        print_json(found.summary)
        return
    result().print(found.text, markup=False, soft_wrap=True)
    say(f"the whole report: {space.folder / 'report.html'}")


def _status(space: "Workspace", setting: "Setting", json: bool) -> None:
    from heedful.protocol.status import status_of

    found = status_of(space, setting)
    if json:
        print_json(found)
        return
    from heedful.cli.study_text import status_lines

    result().print("\n".join(status_lines(found)), markup=False, soft_wrap=True)
