"""`heedful store`: move memory to another kind of store."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import Json
from heedful.cli.output import print_json, result
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.memory.moved_tables import MoveSide

app = typer.Typer(help="Move memory to another store.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _group() -> None:
    """Move memory to another store."""


@app.command()
def move(
    source: Annotated[str, typer.Argument(help="The store to copy: sqlite:FILE or postgresql://…")],
    target: Annotated[str, typer.Argument(help="An empty store: sqlite:FILE or postgresql://…")],
    json: Json = False,
) -> None:
    """Copy banks, decisions, feedback and evidence, and verify counts and digests.

    The source stays as it is. If the move is interrupted, run it again.
    """
    from heedful.cli.progress import shown_progress
    from heedful.memory.move import move as copy
    from heedful.memory.storage import exists

    if not exists(source):
        raise UsageError(f"there is no store {source} to move")
    if source == target:
        raise UsageError("the source and the target are the same store")
    with shown_progress() as show:

        def moved(table: str, done: int, total: int) -> None:
            show(f"moving {table}", done, total, lambda: f"{done} of {total} rows")

        counts = asyncio.run(copy(_side(source), _side(target, moving=True), moved))
    if json:
        tables = {name: {"rows": count.rows, "digest": count.digest} for name, count in counts.items()}
        print_json({"verified": True, "tables": tables})
        return
    for name, count in counts.items():
        result().print(f"{name:<11} {count.rows:>9} rows, sha256 {count.digest[:12]}", markup=False)
    result().print("both stores have the same content", markup=False)


def _side(place: str, *, moving: bool = False) -> "MoveSide":
    from heedful.memory.postgres.address import is_postgres
    from heedful.memory.storage import open_storage

    storage = open_storage(place, moving=moving)
    if is_postgres(place):
        from heedful.memory.postgres.move import PostgresSide
        from heedful.memory.postgres.store import PostgresStore

        assert isinstance(storage, PostgresStore), "the scheme decides"
        return PostgresSide(storage.database)
    from heedful.memory.sqlite import SqliteStore
    from heedful.memory.sqlite_move import SqliteSide

    assert isinstance(storage, SqliteStore), "the scheme decides"
    return SqliteSide(storage.database)
