"""An environment with a watch: a step that takes too long or fails ends the environment, not the study."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from heedful.errors import HeedfulError, WorldError
from heedful.ports import Environment
from heedful.types import Observation

T = TypeVar("T")


class WorldWorker:
    """Makes an environment when it is needed, and a new one after a failure."""

    def __init__(self, make: Callable[[], Environment], patience: float) -> None:
        self._make = make
        self._patience = patience
        self._environment: Environment | None = None

    @property
    def environment(self) -> Environment:
        """The running environment."""
        if self._environment is None:
            self._environment = self._make()
        return self._environment

    async def reset(self, seed: int) -> Observation:
        return await self._watched(lambda: self.environment.reset(seed), f"reset({seed})")

    async def step(self, action: str) -> Observation:
        return await self._watched(lambda: self.environment.step(action), f"step({action!r})")

    def close(self) -> None:
        """End the environment; the next reset makes a new one."""
        environment, self._environment = self._environment, None
        if environment is not None:
            with suppress(Exception):  # it may be broken, and nothing depends on how it ends
                environment.close()

    async def _watched(self, call: Callable[[], Observation], what: str) -> Observation:
        try:
            async with asyncio.timeout(self._patience):
                observation = await _in_thread(call)
        except TimeoutError as error:
            self.close()
            raise WorldError(f"the environment did not answer {what} within {self._patience:g} s") from error
        except HeedfulError as error:
            if isinstance(error, WorldError):
                self.close()
            raise
        except Exception as error:  # an environment is third-party code and may raise anything
            self.close()
            raise WorldError(f"the environment failed at {what}: {type(error).__name__}: {error}") from error
        if not isinstance(observation, Observation):
            raise WorldError(f"the environment returned a {type(observation).__name__} at {what}")
        return observation


async def _in_thread(call: Callable[[], T]) -> T:
    """Call in a daemon thread: unlike a pool's, one that never returns does not keep the process alive."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():  # nobody waits any more
            return
        if error is None:
            future.set_result(result)  # type: ignore[arg-type]
        else:
            future.set_exception(error)

    def work() -> None:
        result, error = None, None
        try:
            result = call()
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, daemon=True).start()
    return await future
