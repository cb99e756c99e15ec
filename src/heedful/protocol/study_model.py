"""The model that a study names."""

from heedful.models.schemes import ModelOptions, make_model
from heedful.ports import Model
from heedful.protocol.study import ModelSettings


def study_model(settings: ModelSettings) -> Model:
    """The endpoint at the study's URL, or the embedded model with the study's weights."""
    return make_model(model_options(settings))


def model_options(settings: ModelSettings) -> ModelOptions:
    return ModelOptions(
        url=settings.url,
        model=settings.model,
        timeout=settings.timeout,
        slots=settings.slots,
        weights=settings.weights,
        threads=settings.threads,
        context=settings.context,
        repeatable=settings.repeatable,
        headers=settings.headers,
        extra=settings.extra,
    )
