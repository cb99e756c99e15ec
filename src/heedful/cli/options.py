"""Options that several commands share."""

from collections.abc import Iterable
from typing import Annotated

import typer

from heedful.errors import UsageError

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
BankName = Annotated[str, typer.Option("--bank", "-b", help="Name of the bank.")]
Store = Annotated[
    str | None,
    typer.Option(
        help="File of the store, or postgresql://… [default: HEEDFUL_STORE, or a file in HEEDFUL_HOME].",
        show_default=False,
    ),
]
Workers = Annotated[
    str | None,
    typer.Option(
        help="Decode with many workers: a number of processes, URLs with weights (URL,URL*2) or ray://HOST:PORT.",
        show_default=False,
    ),
]
Url = Annotated[
    str | None,
    typer.Option(
        envvar="HEEDFUL_URL", help="Base URL of an OpenAI-compatible endpoint [default: embedded model]."
    ),
]
ModelName = Annotated[
    str | None, typer.Option("--model", envvar="HEEDFUL_MODEL", help="Name of the model at the endpoint.")
]
Headers = Annotated[
    list[str] | None,
    typer.Option(
        "--header",
        help="A header for every request, NAME: VALUE; $NAME as value reads an environment variable.",
        show_default=False,
    ),
]
Extra = Annotated[
    str,
    typer.Option(help="JSON object of body fields for every request, such as reasoning_effort."),
]
Weights = Annotated[
    str, typer.Option(help="Embedded model: a name from `heedful weights list` or a GGUF file.")
]
Threads = Annotated[
    int | None, typer.Option(min=1, max=512, help="Threads of the embedded model [default: all cores].")
]
Scope = Annotated[
    list[str] | None,
    typer.Option("--scope", help="A scope as KEY=VALUE, for example user=ana; may be repeated."),
]

Explore = Annotated[
    float,
    typer.Option(
        min=0,
        max=1,
        help="Share of answers for which a fair coin decides whether a memory answer may be used.",
    ),
]
Patience = Annotated[float, typer.Option(min=0.1, help="Time limit in seconds after the first answer.")]
By = Annotated[
    str | None,
    typer.Option("--by", help="Who makes the change, for the audit log [default: your user name]."),
]


def actor(given: str | None) -> str:
    """Who makes a change: the given name, or the user of this process."""
    if given is not None:
        return given
    from getpass import getuser

    try:
        return getuser()
    except (ImportError, KeyError, OSError):  # a container may have no user name
        return "unknown"


def refuse_idle(context: typer.Context, names: Iterable[str], reason: str) -> None:
    """Refuse options that were given on the command line although they have no effect."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is not None and source.name == "COMMANDLINE":
            option = max(parameter.opts, key=len)
            raise UsageError(f"{option} has no effect {reason}; leave it out")


def refuse_idle_model_options(context: typer.Context, url: str | None) -> None:
    """Refuse options of the embedded model with an endpoint, and those of an endpoint without one."""
    if not url:
        idle = ("model", "header", "extra", "timeout", "logprobs")
        refuse_idle(context, idle, "on the embedded model; it needs --url")
    elif url.startswith(("http:", "https:")):
        refuse_idle(context, ("weights", "threads"), "on an endpoint (--url or HEEDFUL_URL)")
