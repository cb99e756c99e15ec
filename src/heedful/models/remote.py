"""A decode for somebody else: in a worker process or a Ray actor, with the error as a value."""

from collections.abc import Callable

from heedful.errors import HeedfulError, ModelError
from heedful.ports import Model
from heedful.types import Decode, Prompt

MakeModel = Callable[[], Model]
Reply = Decode | HeedfulError


class RemoteDecoder:
    """Makes its model at the first prompt, and never raises."""

    def __init__(self, make: MakeModel) -> None:
        self._make = make
        self._model: Model | None = None

    async def reply(self, prompt: Prompt) -> Reply:
        try:
            if self._model is None:
                self._model = self._make()
            return await self._model.decode(prompt)
        except HeedfulError as error:
            return error
        except Exception as error:  # a plug-in's model may raise anything, and the worker must live on
            return ModelError(f"{type(error).__name__}: {error}")


def opened(reply: Reply) -> Decode:
    """The decode of a reply; raises its error."""
    if isinstance(reply, HeedfulError):
        raise reply
    return reply
