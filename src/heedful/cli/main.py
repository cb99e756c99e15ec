"""`heedful`: all commands, and how their errors are reported."""

import sys

import typer

from heedful.cli import (
    agent,
    ask,
    bank,
    bank_audit,
    bank_build,
    compare,
    decisions,
    demo,
    doctor,
    feedback,
    govern,
    key,
    probe,
    purge,
    serve,
    shadow,
    store,
    study,
    study_experiments,
    study_from_decisions,
    study_judge,
    study_rows,
    weights,
    why,
)
from heedful.errors import HeedfulError
from heedful.mismatch import plain_value_problem

app = typer.Typer(
    name="heedful",
    help="Controlled prompt memory: answer first, consult memory only when unsure, roll back worse answers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("ask")(ask.ask)
app.command("why")(why.why)
app.add_typer(decisions.app, name="decisions")
app.command("serve")(serve.serve)
app.add_typer(key.app, name="key")
app.command("feedback")(feedback.feedback)
app.command("purge")(purge.purge)
app.command("probe")(probe.probe)
app.command("doctor")(doctor.doctor)
bank.app.command()(bank_build.build)
bank.app.command()(bank_audit.audit)
app.add_typer(bank.app, name="bank")
app.command("govern")(govern.govern)
app.command("compare")(compare.compare)
app.add_typer(weights.app, name="weights")
study.app.command("from-decisions")(study_from_decisions.from_decisions)
app.add_typer(study.app, name="study")
study_rows.add_to(study.app)
study_judge.add_to(study.app)
study_experiments.add_to(study.app)
app.add_typer(agent.app, name="agent")
app.add_typer(shadow.app, name="shadow")
app.add_typer(store.app, name="store")


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("heedful"))
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Options before the command."""


def run() -> None:
    """Run the command line; an error prints one sentence and sets the exit code."""
    try:
        code = app(standalone_mode=False)
    except HeedfulError as error:
        print(f"heedful: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except typer.BadParameter as error:
        error.message = plain_value_problem(error.message)
        error.show()
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("heedful: interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except Exception as error:  # the other usage errors of the parser, which has no public name for them
        show = getattr(error, "show", None)
        if show is None:
            raise
        show()
        sys.exit(getattr(error, "exit_code", 2))
    sys.exit(code if isinstance(code, int) else 0)
