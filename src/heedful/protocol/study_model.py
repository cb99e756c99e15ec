"""The model that a study names."""

from heedful.models.chat import ChatModel
from heedful.models.embedded import EmbeddedModel
from heedful.ports import Model
from heedful.protocol.study import ModelSettings


def study_model(settings: ModelSettings) -> Model:
    """The endpoint at the study's URL, or the embedded model with the study's weights."""
    if settings.url:
        return ChatModel(
            base_url=settings.url,
            model=settings.model,
            concurrency=settings.slots,
            timeout=settings.timeout,
        )
    return EmbeddedModel(
        weights=settings.weights,
        slots=settings.slots,
        context=settings.context,
        threads=settings.threads,
    )
