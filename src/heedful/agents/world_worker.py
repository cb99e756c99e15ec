"""An environment with a watch: a step that takes too long or fails ends the environment, not the study."""

import asyncio
import threading
from collections.abc import Callable, Sequence
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
            close_world(environment)

    async def _watched(self, call: Callable[[], Observation], what: str) -> Observation:
        try:
            return usable(await watched(call, what, self._patience), what)
        except WorldError:
            self.close()
            raise


def close_world(environment: Environment) -> None:
    """End an environment; it may be broken, and nothing depends on how it ends."""
    with suppress(Exception):
        environment.close()


async def watched(call: Callable[[], T], what: str, patience: float) -> T:
    """The result of a call of an environment; a failure, or no result in time, is a `WorldError`."""
    try:
        async with asyncio.timeout(patience):
            return await _in_thread(call)
    except TimeoutError as error:
        raise WorldError(f"the environment did not answer {what} within {patience:g} s") from error
    except HeedfulError:
        raise
    except Exception as error:  # an environment is third-party code and may raise anything
        raise WorldError(f"the environment failed at {what}: {type(error).__name__}: {error}") from error


def usable(seen: object, what: str) -> Observation:
    """The observation, or a `WorldError` that says what is wrong with it."""
    if not isinstance(seen, Observation):
        raise WorldError(f"the environment returned a {type(seen).__name__}, not an Observation, at {what}")
    if not isinstance(seen.text, str) or not _are_actions(seen.actions):
        raise WorldError(f"the environment returned an observation without a text or actions at {what}")
    if not isinstance(seen.score, int | float) or not 0 <= seen.score <= 1:
        raise WorldError(f"the environment returned the score {seen.score!r} at {what}: it must be 0 to 1")
    if not seen.actions and not seen.done:
        raise WorldError(
            f"the environment offers no action at {what} although the episode is not done; for free text, "
            "offer an action that ends with [...]"
        )
    return seen


def _are_actions(actions: object) -> bool:
    """Whether these are a sequence of texts; one text is a sequence of letters."""
    return isinstance(actions, Sequence) and not isinstance(actions, str | bytes)


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
        result: T | None = None
        error: BaseException | None = None
        try:
            result = call()
        except SystemExit as raised:
            error = RuntimeError(f"SystemExit({raised.code})")  # it ends the episode, not the study
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, daemon=True).start()
    return await future
