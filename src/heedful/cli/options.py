"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
BankName = Annotated[str, typer.Option("--bank", "-b", help="Name of the bank.")]
Store = Annotated[
    Path | None,
    typer.Option(
        help="File of the store [default: in HEEDFUL_HOME, or in the platform's data folder].",
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
    int | None, typer.Option(min=1, help="Threads of the embedded model [default: all cores].")
]
Scope = Annotated[
    list[str] | None,
    typer.Option("--scope", help="A scope as KEY=VALUE, for example user=ana; may be repeated."),
]
