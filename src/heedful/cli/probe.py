"""`heedful probe`: show what an endpoint supports."""

import asyncio
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, cast

import typer

from heedful.cli.model_options import read_extra
from heedful.cli.options import Extra, Headers, Json, ModelName, Weights
from heedful.cli.output import print_json, result, say

if TYPE_CHECKING:
    from heedful.models.probe import Probe


def probe(
    url: Annotated[str, typer.Argument(help="Base URL, such as http://127.0.0.1:8000/v1, or `embedded`.")],
    model: ModelName = None,
    weights: Weights = "smollm2-135m",
    header: Headers = None,
    extra: Extra = "{}",
    json: Json = False,
) -> None:
    """Ask an endpoint a few questions, report what it supports, and note it for later commands."""
    from heedful.cli.resources import open_model
    from heedful.models.chat import ChatModel
    from heedful.models.embedded import EmbeddedModel
    from heedful.models.endpoints import note_rejects
    from heedful.models.headers import read_headers
    from heedful.models.probe import probe as ask
    from heedful.models.schemes import ModelOptions

    engine = None
    if url == "embedded":
        engine = cast(EmbeddedModel, open_model(ModelOptions(weights=weights)))  # keep a reference
    chat = (
        engine.chat
        if engine
        else ChatModel(
            base_url=url,
            model=model or "",
            timeout=60.0,
            headers=read_headers(header or ()),
            extra=read_extra(extra),
        )
    )
    say("asking about ten short questions …")
    capabilities = asyncio.run(ask(chat))
    if engine is None:
        note_rejects(chat.base_url, chat.model, capabilities.rejects)
    else:
        capabilities = replace(capabilities, endpoint="embedded", model=weights)
    if json:
        print_json(asdict(capabilities))
        return
    result().print(_text(capabilities), markup=False, soft_wrap=True)


def _text(probe: "Probe") -> str:
    drift = "" if probe.logprob_drift is None else f", log-probs within {probe.logprob_drift:.2g}"
    cached = f"used ({probe.cached_tokens} tokens reused)" if probe.cached_tokens else "not detected"
    return "\n".join(
        [
            f"{probe.endpoint} {probe.model}".rstrip(),
            f"  log-probs      {probe.logprobs} {probe.logprob_problem}".rstrip(),
            f"  top_logprobs   {probe.top_logprobs or 'none'}",
            f"  greedy text    {'repeatable' if probe.deterministic_text else 'not repeatable'}{drift}",
            f"  prefix cache   {cached}",
            f"  JSON schema    {'followed' if probe.json_schema else 'not followed'}",
            f"  not sent       {', '.join(probe.rejects) or 'nothing: every optional field is accepted'}",
            f"  signals        {', '.join(probe.signals)}",
        ]
    )
