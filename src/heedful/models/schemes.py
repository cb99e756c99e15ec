"""Model options of commands and studies, and a registry that creates models by URL scheme."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from heedful.errors import UsageError
from heedful.plugins import Factories
from heedful.ports import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """The options of every kind of model; each kind uses those that apply to it."""

    url: str = ""
    """`http://…`, or `SCHEME:…` of a plug-in; empty: the embedded model."""
    model: str = ""
    """The model's name at the endpoint."""
    logprobs: bool = True
    timeout: float = 120.0
    retries: int = 3
    slots: int = 4
    """Number of concurrent requests."""
    weights: str = "smollm2-135m"
    threads: int | None = None
    context: int = 2048
    repeatable: bool = False
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers to add to every request to an endpoint."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Body fields to add to every request to an endpoint."""


MODELS: Factories[ModelOptions, Model] = Factories(
    "heedful.models",
    {
        "http": "heedful.models.chat:chat_model",
        "https": "heedful.models.chat:chat_model",
        "embedded": "heedful.models.embedded:embedded_model",
    },
)
"""Kinds of models by URL scheme."""


def make_model(options: ModelOptions) -> Model:
    """The model at the URL, or the embedded one."""
    scheme = options.url.partition(":")[0].lower() if options.url else "embedded"
    if scheme not in MODELS:
        known = ", ".join(f"{name}:" for name in MODELS if name != "embedded")
        raise UsageError(
            f"{options.url!r} is not a supported URL; use one such as http://127.0.0.1:8000/v1 "
            f"(supported: {known})"
        )
    return MODELS.make(scheme, options, Model)
