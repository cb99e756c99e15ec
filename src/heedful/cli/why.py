"""`heedful why`: explain a decision."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import Json, Store, Threads, refuse_idle
from heedful.cli.output import print_json, result, say

if TYPE_CHECKING:
    from heedful.ports import Model
    from heedful.records import Decision


def why(
    context: typer.Context,
    decision: Annotated[str, typer.Argument(help="Id of a decision, an id prefix, or `last`.")] = "last",
    leave_one_out: Annotated[
        bool, typer.Option("--leave-one-out", help="Decode again without each recalled entry.")
    ] = False,
    url: Annotated[
        str | None,
        typer.Option(help="URL of the model for --leave-one-out [default: as recorded]."),
    ] = None,
    threads: Threads = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Explain a recorded decision step by step."""
    from msgspec import to_builtins

    from heedful.cli.decisions import feedback_lines
    from heedful.cli.resources import open_known_store
    from heedful.decisions import decision_fields
    from heedful.explain import entry_texts, explain, without_fields, without_lines

    if not leave_one_out:
        refuse_idle(context, ("url", "threads"), "without --leave-one-out")
    opened = open_known_store(store)
    recorded = asyncio.run(opened.journal.find(decision))
    feedback = asyncio.run(opened.feedback.of([recorded]))[recorded.id]
    without = None
    if leave_one_out:
        from heedful.credit import leave_one_out as decode_without

        say("decoding again without each recalled entry …")
        without = asyncio.run(decode_without(recorded, model_of(recorded, threads, url), opened.version))
    if json:
        left_out = {} if without is None else {"leave_one_out": without_fields(without)}
        print_json({**decision_fields(recorded), "feedback": to_builtins(list(feedback)), **left_out})
        return
    lines = explain(recorded, asyncio.run(entry_texts(recorded, opened)))
    lines += feedback_lines(feedback)
    if without is not None:
        lines += without_lines(recorded, without)
    result().print("\n".join(lines), markup=False, soft_wrap=True)


def model_of(decision: "Decision", threads: int | None, url: str | None = None) -> "Model":
    """The model that made the decision, opened again."""
    from heedful.cli.resources import open_model
    from heedful.errors import UsageError
    from heedful.models.chat import UNNAMED
    from heedful.models.schemes import MODELS, ModelOptions

    recorded = decision.model
    if recorded.endpoint == "embedded":
        return open_model(ModelOptions(weights=recorded.name, threads=threads))
    place = url or recorded.endpoint
    if place.partition(":")[0].lower() not in MODELS:
        raise UsageError(
            f"{recorded.name} ({recorded.endpoint}) made this decision, and its URL is not recorded: give "
            "--url, or call heedful.credit.leave_one_out with the model in Python"
        )
    name = "" if recorded.name == UNNAMED else recorded.name
    model = open_model(ModelOptions(url=place, model=name, threads=threads))
    if model.traits.fingerprint != recorded.fingerprint:
        raise UsageError(
            f"{place} is not the model that made decision {decision.id}: "
            f"it is {model.traits.name}, not {recorded.name} ({recorded.endpoint})"
        )
    return sampling_alike(model, recorded.sampling)


def sampling_alike(model: "Model", sampling: Mapping[str, int | float | None]) -> "Model":
    """The model with the settings of a served request that a prompt does not hold."""
    from heedful.models.chat import ChatModel

    if not sampling or not isinstance(model, ChatModel):
        return model
    others = {name: value for name, value in sampling.items() if name not in ("temperature", "seed")}
    left_out = {"temperature"} if sampling.get("temperature") is None else set()
    return replace(model, extra={**model.extra, **others}, rejects=model.rejects | left_out)
