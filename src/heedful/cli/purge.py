"""`heedful purge`: delete texts for good."""

import asyncio
import time
from typing import Annotated

import typer

from heedful.cli.moments import span_of
from heedful.cli.options import Json, Store
from heedful.cli.output import counted, print_json, result
from heedful.errors import UsageError


def purge(
    entry: Annotated[str, typer.Option(help="Id of an entry; needs --bank.")] = "",
    bank: Annotated[str, typer.Option("--bank", "-b", help="Name of a bank: all its entries.")] = "",
    decision: Annotated[str, typer.Option(help="Id of a decision, an id prefix, or `last`.")] = "",
    user: Annotated[str, typer.Option(help="Entries and decisions of this user (scope user=NAME).")] = "",
    keep: Annotated[str, typer.Option(help="Delete decisions older than this, for example 30d.")] = "",
    with_decisions: Annotated[
        bool, typer.Option("--with-decisions", help="Also delete decisions that recalled the entries.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be deleted.")] = False,
    store: Store = None,
    json: Json = False,
) -> None:
    """Delete texts for good; a tombstone with digest and date remains."""
    from heedful.cli.resources import open_known_store
    from heedful.memory.purge import PurgeOrder

    if sum(map(bool, (entry or bank, decision, user, keep))) != 1 or (entry and not bank):
        raise UsageError(
            "give one of --entry ID --bank NAME, --bank NAME, --decision ID, --user NAME and --keep 30d"
        )
    if with_decisions and not bank:
        raise UsageError("--with-decisions needs --bank, alone or with --entry")
    order = PurgeOrder(
        bank=bank,
        entry=entry,
        decision=decision,
        user=user,
        before=time.time() - span_of(keep) if keep else None,
        with_decisions=with_decisions,
    )
    opened = open_known_store(store)
    done = asyncio.run(opened.purge_count(order) if dry_run else opened.purge(order))
    if json:
        print_json({"entries": done.entries, "decisions": done.decisions, "deleted": not dry_run})
        return
    what = "would be deleted" if dry_run else "deleted for good"
    result().print(
        f"{what}: {counted(done.entries, 'entry', 'entries')}, {counted(done.decisions, 'decision')}"
    )
