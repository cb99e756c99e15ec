"""`heedful why`: explain a decision."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import Json, Store, Threads
from heedful.cli.output import print_json, result, say

if TYPE_CHECKING:
    from heedful.ports import Model
    from heedful.records import Decision


def why(
    decision: Annotated[str, typer.Argument(help="Id of a decision, an id prefix, or `last`.")] = "last",
    leave_one_out: Annotated[
        bool, typer.Option("--leave-one-out", help="Decode again without each recalled entry.")
    ] = False,
    threads: Threads = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Explain a recorded decision step by step."""
    from heedful.cli.explain import entry_texts, explain, without_fields, without_lines
    from heedful.cli.resources import open_store
    from heedful.decisions import decision_fields
    from heedful.memory.journal import SqliteJournal

    opened = open_store(store)
    recorded = asyncio.run(SqliteJournal(opened.database).find(decision))
    without = None
    if leave_one_out:
        from heedful.credit import leave_one_out as decode_without

        say("decoding again without each recalled entry …")
        without = asyncio.run(decode_without(recorded, model_of(recorded, threads), opened.version))
    if json:
        left_out = {} if without is None else {"leave_one_out": without_fields(without)}
        print_json({**decision_fields(recorded), **left_out})
        return
    lines = explain(recorded, asyncio.run(entry_texts(recorded, opened)))
    if without is not None:
        lines += without_lines(without)
    result().print("\n".join(lines), markup=False, soft_wrap=True)


def model_of(decision: "Decision", threads: int | None) -> "Model":
    """The model that made the decision."""
    from heedful.cli.resources import open_model
    from heedful.errors import UsageError
    from heedful.models.chat import UNNAMED
    from heedful.models.schemes import ModelOptions

    model = decision.model
    if model.endpoint == "embedded":
        return open_model(ModelOptions(weights=model.name, threads=threads))
    if not model.endpoint.startswith("http"):
        raise UsageError(
            f"{model.name} ({model.endpoint}) made this decision, and this command cannot open it again: "
            "call heedful.credit.leave_one_out with the model in Python"
        )
    name = "" if model.name == UNNAMED else model.name
    return open_model(ModelOptions(url=model.endpoint, model=name))
