"""`heedful weights`: manage the model files on this machine."""

from typing import Annotated

import typer

from heedful.cli.options import Json
from heedful.cli.output import print_json, result

app = typer.Typer(
    help="List, download and locate model weights.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(help="A name from `heedful weights list`.")]


@app.command("list")
def list_(json: Json = False) -> None:
    """List the known weights and their state on this machine."""
    from heedful.models import weights
    from heedful.models.catalogue import CATALOGUE

    known = [(item, weights.status(item.name)) for item in CATALOGUE.values()]
    if json:
        rows = [
            {
                "name": item.name,
                "state": status.state,
                "bytes": status.bytes,
                "total": status.total,
                "licence": item.licence,
                "purpose": item.purpose,
                "sha256": {file.name: file.sha256 for file in item.files},
            }
            for item, status in known
        ]
        print_json({"weights": rows})
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("name", "state", "size", "licence", "purpose"):
        table.add_column(heading, no_wrap=heading == "name")
    for item, status in known:
        table.add_row(item.name, status.state, f"{item.size / 1e6:.0f} MB", item.licence, item.purpose)
    result().print(table)


@app.command()
def pull(name: Name, json: Json = False) -> None:
    """Download weights; interrupted downloads are resumed, and files are checked by sha256."""
    from heedful.cli.resources import pull_weights
    from heedful.models import weights

    weights.status(name)
    folder = pull_weights(name)
    if json:
        print_json({"name": name, "path": str(folder)})
        return
    result().print(str(folder), markup=False, soft_wrap=True)


@app.command()
def path(
    name: Name,
    verify: Annotated[bool, typer.Option("--verify", help="Hash the files again.")] = False,
    json: Json = False,
) -> None:
    """Print the folder of the weights."""
    from heedful.models import weights

    folder = weights.verify(name) if verify else weights.path(name)
    if json:
        print_json({"name": name, "path": str(folder), "verified": verify})
        return
    result().print(str(folder), markup=False, soft_wrap=True)
