"""`heedful probe`: what an endpoint can give."""

import asyncio
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, cast

import typer

from heedful.cli.options import Json, ModelName, Weights
from heedful.cli.output import print_json, result, say

if TYPE_CHECKING:
    from heedful.models.probe import Probe


def probe(
    url: Annotated[str, typer.Argument(help="Base URL, such as http://127.0.0.1:8000/v1, or `embedded`.")],
    model: ModelName = None,
    weights: Weights = "smollm2-135m",
    json: Json = False,
) -> None:
    """Ask an endpoint a few questions and report which confidence signals it allows."""
    from heedful.cli.resources import open_model
    from heedful.models.chat import ChatModel
    from heedful.models.embedded import EmbeddedModel
    from heedful.models.options import ModelOptions
    from heedful.models.probe import probe as ask

    engine = None
    if url == "embedded":
        engine = cast(EmbeddedModel, open_model(ModelOptions(weights=weights)))  # ends when it is let go
    chat = ChatModel(base_url=url, model=model or "", timeout=60.0) if engine is None else engine.chat
    say("asking about ten short questions …")
    found = asyncio.run(ask(chat))
    if engine:
        found = replace(found, endpoint="embedded", model=weights)
    if json:
        print_json(asdict(found))
        return
    result().print(_told(found), markup=False, soft_wrap=True)


def _told(found: "Probe") -> str:
    drift = "" if found.logprob_drift is None else f", log-probs within {found.logprob_drift:.2g}"
    cached = f"seen ({found.cached_tokens} tokens reused)" if found.cached_tokens else "not seen"
    return "\n".join(
        [
            f"{found.endpoint} {found.model}".rstrip(),
            f"  log-probs      {found.logprobs} {found.logprob_problem}".rstrip(),
            f"  top_logprobs   {found.top_logprobs or 'none'}",
            f"  greedy text    {'repeatable' if found.deterministic_text else 'not repeatable'}{drift}",
            f"  prefix cache   {cached}",
            f"  JSON schema    {'kept' if found.json_schema else 'not kept'}",
            f"  signals        {', '.join(found.signals)}",
        ]
    )
