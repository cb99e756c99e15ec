"""Many workers with the same model, used as one model: each prompt goes to a worker with free capacity."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from heedful.errors import ModelError, RequestError, UsageError
from heedful.models.crew import Crew
from heedful.ports import Model
from heedful.types import Decode, Prompt, Traits

TRIES = 3
"""After this many workers failed on a prompt, the prompt is taken to be the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """An endpoint, a process or an actor that decodes."""

    name: str
    model: Model
    capacity: int
    """Number of concurrent requests."""


Check = Callable[[Worker], Awaitable[None]]
"""Asks a worker a question; raises `ModelError` if it is down, another error if it must not be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Decodes with all of its workers; one that fails or is slow gets less, and is tried again later."""

    workers: Sequence[Worker]
    identity: Traits
    """The traits of the model that every worker serves."""
    check: Check
    """Runs before a worker's first prompt, and again after each failure."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _crews: dict[asyncio.AbstractEventLoop, Crew] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if not self.workers:
            raise UsageError("a fleet has no workers; give at least one")

    @property
    def capacity(self) -> int:
        """Number of concurrent requests of all workers together."""
        return sum(worker.capacity for worker in self.workers)

    @property
    def up(self) -> int:
        """Number of workers that take prompts now."""
        return sum(crew.up for loop, crew in self._crews.items() if not loop.is_closed())

    @property
    def traits(self) -> Traits:
        """The identity, with the log-probs that every worker gives."""
        every = [worker.model.traits for worker in self.workers]
        logprobs = all(traits.logprobs for traits in every)
        top = min(traits.top_logprobs for traits in every)
        return replace(self.identity, logprobs=logprobs, top_logprobs=top)

    async def decode(self, prompt: Prompt) -> Decode:
        crew = self._crew()
        for attempt in range(TRIES):
            try:
                return await crew.decode(prompt)
            except RequestError:
                raise
            except ModelError as error:
                if attempt + 1 == TRIES:
                    raise ModelError(f"{TRIES} workers failed, the last one with: {error}") from error
        raise AssertionError("the loop above returns or raises")

    async def aclose(self) -> None:
        """Close all workers; the next decode starts and checks them again."""
        crew = self._crews.pop(asyncio.get_running_loop(), None)
        if crew is not None:
            await crew.close()
        for worker in self.workers:
            await worker.model.aclose()

    def _crew(self) -> Crew:
        """The state of the workers in the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._crews:
            for ended in [known for known in self._crews if known.is_closed()]:
                del self._crews[ended]
            self._crews[loop] = Crew(self.workers, self.check, self.sleep)
        return self._crews[loop]


def slots_of(model: Model, slots: int) -> int:
    """How many passes to decode at once: what a fleet can take, or the slots of a single model."""
    return model.capacity if isinstance(model, Fleet) else slots
