"""Model options that need reading, and what a new endpoint accepts."""

import asyncio
import json
from contextlib import suppress
from typing import Any

from heedful.errors import RequestError, UsageError
from heedful.models.schemes import ModelOptions
from heedful.ports import Model


def read_extra(text: str) -> dict[str, Any]:
    """Body fields from `--extra`."""
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--extra {text!r} is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise UsageError(f"--extra {text!r} is not a JSON object; write one such as '{{\"top_k\": 1}}'")
    return fields


def learn_fields(options: ModelOptions) -> None:
    """Find out once which optional fields a new endpoint accepts, and note it for later commands."""
    from heedful.models.chat import ChatModel
    from heedful.models.endpoints import is_known, note_rejects
    from heedful.models.probe import check_fields
    from heedful.models.schemes import make_model

    model: Model = make_model(options)
    if isinstance(model, ChatModel) and not is_known(model.base_url, model.model):
        with suppress(RequestError):  # the user's own question may still be accepted
            note_rejects(model.base_url, model.model, asyncio.run(check_fields(model)))
