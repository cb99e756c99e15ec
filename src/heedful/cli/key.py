"""`heedful key`: keys for the callers of `heedful serve`."""

from typing import Annotated

import typer

from heedful.cli.options import Json
from heedful.cli.output import print_json, say

app = typer.Typer(
    help="Make keys for the callers of heedful serve.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def _group() -> None:
    """Keep `new` a command of its own, although it is the only one."""


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the caller, for logs and decisions.")],
    policy: Annotated[
        list[str] | None,
        typer.Option(help="A policy that the key may use [default: all].", show_default=False),
    ] = None,
    bank: Annotated[
        list[str] | None,
        typer.Option("--bank", "-b", help="A bank that the key may use [default: all].", show_default=False),
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help="A scope that requests may name: KEY=VALUE or KEY=* [default: none].", show_default=False
        ),
    ] = None,
    admin: Annotated[
        bool, typer.Option("--admin", help="Let the key reload policies and see all decisions.")
    ] = False,
    json: Json = False,
) -> None:
    """Print a new key once, and the table that the file of --keys gets."""
    from heedful.serve.callers import key_hash, new_key
    from heedful.serve.key_file import KeyEntry, key_table, refuse_entry

    key = new_key()
    entry = KeyEntry(
        name=name,
        sha256=key_hash(key),
        policies=tuple(policy or ("*",)),
        banks=tuple(bank or ("*",)),
        scopes=tuple(scope or ()),
        admin=admin,
    )
    refuse_entry("the new key", entry)
    if json:
        print_json({"key": key, "table": key_table(entry)})
        return
    say(f"heedful: the key of {name}, shown only now: {key}")
    say("heedful: add this table to the file of heedful serve --keys:")
    typer.echo(key_table(entry))
