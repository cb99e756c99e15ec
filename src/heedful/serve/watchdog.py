"""Ends a request whose answer takes too long, or whose client went away."""

import asyncio
from typing import TYPE_CHECKING

from heedful.serve.admission import ClientGoneError, ServeLimits
from heedful.serve.refusal import RefusalError

if TYPE_CHECKING:
    from starlette.types import Receive

PATIENT_SECONDS = 0.05
"""A request that is answered within this time costs one timer; only a longer one is watched by a task."""


class Watchdog:
    """Watches the block of a `with` statement, in which the answer to a request is made and sent."""

    __slots__ = ("_block", "_error", "_limits", "_loop", "_receive", "_timer", "_watcher")

    def __init__(self, receive: "Receive", limits: ServeLimits) -> None:
        block = asyncio.current_task()
        assert block is not None, "requests run in tasks"
        self._block: asyncio.Task[object] = block
        self._receive, self._limits = receive, limits
        self._loop = asyncio.get_running_loop()
        self._error: Exception | None = None
        self._watcher: asyncio.Task[None] | None = None

    def __enter__(self) -> None:
        self._timer = self._loop.call_later(min(PATIENT_SECONDS, self._limits.seconds), self._start_watching)

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()
        if kind is asyncio.CancelledError and self._error is not None:
            self._block.uncancel()
            raise self._error from None

    def _start_watching(self) -> None:
        self._watcher = self._loop.create_task(self._watch())

    async def _watch(self) -> None:
        try:
            async with asyncio.timeout(self._limits.seconds):
                while (await self._receive())["type"] != "http.disconnect":
                    pass
        except TimeoutError:
            seconds = self._limits.seconds
            self._end(RefusalError(504, f"there was no answer within {seconds:g} s; try again"))
        else:
            self._end(ClientGoneError())

    def _end(self, error: Exception) -> None:
        self._error = error
        self._block.cancel()
