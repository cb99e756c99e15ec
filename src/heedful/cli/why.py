"""`heedful why`: a decision, explained."""

import asyncio
from typing import Annotated, Any

import typer

from heedful.cli.options import Json, Store, Threads
from heedful.cli.output import print_json, result, say


def why(
    decision: Annotated[str, typer.Argument(help="Id of a decision, a beginning of it, or `last`.")] = "last",
    leave_one_out: Annotated[
        bool, typer.Option("--leave-one-out", help="Decode again without each recalled entry.")
    ] = False,
    threads: Threads = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Explain a recorded decision step by step."""
    from heedful.cli.explain import explain, left_out_lines
    from heedful.cli.opening import open_store
    from heedful.memory.journal import SqliteJournal

    opened = open_store(store)
    record = SqliteJournal(opened.database).find(decision)
    left_out = None
    if leave_one_out:
        from heedful.credit import leave_one_out as decode_without

        say("decoding again without each recalled entry …")
        found = asyncio.run(decode_without(record, _model_of(record, threads), opened.version))
        left_out = [{"entry": one.entry, "answer": one.answer, "flipped": one.flipped} for one in found]
    if json:
        print_json(record if left_out is None else {**record, "leave_one_out": left_out})
        return
    lines = explain(record, opened.version)
    if left_out is not None:
        lines += left_out_lines(record, left_out)
    result().print("\n".join(lines), markup=False, soft_wrap=True)


def _model_of(record: dict[str, Any], threads: int | None) -> Any:
    """The model that made the decision."""
    from heedful.cli.opening import open_model
    from heedful.models.chat import UNNAMED

    model = record["model"]
    if model["endpoint"] == "embedded":
        return open_model(None, None, model["name"], threads)
    name = None if model["name"] == UNNAMED else model["name"]
    return open_model(model["endpoint"], name, "", threads)
