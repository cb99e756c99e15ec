"""A time limit for other people's code that often returns at once."""

import asyncio
from collections.abc import Awaitable, Generator
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def within(seconds: float | None, work: Awaitable[T]) -> T:
    """The result of `work`, or a `TimeoutError` after some seconds; None: no limit.

    Work that never waits gets no timer, which would cost more than a kept answer's whole decision.
    """
    steps = work.__await__()
    try:
        awaited = steps.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    async with asyncio.timeout(seconds):
        return await _continued(steps, awaited)


@coroutine
def _continued(steps: Generator[Any, Any, T], awaited: Any) -> Generator[Any, Any, T]:
    """Go on with work that waits for something already."""
    while True:
        failure: BaseException | None = None
        try:
            value = yield awaited
        except BaseException as error:  # a cancellation belongs to the work, too
            failure = error
        try:
            awaited = steps.send(value) if failure is None else steps.throw(failure)
        except StopIteration as done:
            result: T = done.value
            return result
