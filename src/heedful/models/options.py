"""Models by the scheme of a URL: what a command or a study says of one, and what makes it."""

from collections.abc import Callable
from dataclasses import dataclass

from heedful.errors import UsageError
from heedful.plugins import Registry
from heedful.ports import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """All that a model may be made from; each kind takes what it needs."""

    url: str = ""
    """`http://…`, or `SCHEME:…` of a plug-in; empty: the embedded model."""
    model: str = ""
    """Its name at the endpoint."""
    logprobs: bool = True
    timeout: float = 120.0
    slots: int = 4
    """Requests at once."""
    weights: str = "smollm2-135m"
    threads: int | None = None
    context: int = 2048


MODELS: Registry[Callable[[ModelOptions], Model]] = Registry(
    "heedful.models",
    {
        "http": "heedful.models.chat:chat_model",
        "https": "heedful.models.chat:chat_model",
        "embedded": "heedful.models.embedded:embedded_model",
    },
)
"""Kinds of models by the scheme of their URL."""


def make_model(options: ModelOptions) -> Model:
    """The model at the URL, or the embedded one."""
    scheme = options.url.partition(":")[0].lower() if options.url else "embedded"
    if scheme not in MODELS:
        known = ", ".join(f"{name}:" for name in MODELS if name != "embedded")
        raise UsageError(
            f"{options.url!r} is not a URL that heedful knows; give one like http://127.0.0.1:8000/v1 "
            f"(known: {known})"
        )
    return MODELS[scheme](options)
