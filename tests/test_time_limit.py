"""Work under a time limit: finished, late, failed or cancelled."""

import asyncio

import pytest

from heedful.time_limit import within


async def at_once() -> str:
    return "done"


async def after_waiting() -> str:
    for _ in range(3):
        await asyncio.sleep(0)
    return "done"


async def failing() -> str:
    await asyncio.sleep(0)
    raise LookupError("lost")


async def never(cleaned: list[str]) -> str:
    try:
        await asyncio.Event().wait()
    finally:
        cleaned.append("cleaned")
    return "done"


@pytest.mark.parametrize("seconds", [60.0, None])
def test_work_in_time_gives_its_result(seconds: float | None) -> None:
    async def both() -> tuple[str, str]:
        return await within(seconds, at_once()), await within(seconds, after_waiting())

    assert asyncio.run(both()) == ("done", "done")


def test_late_work_is_cancelled_and_cleans_up() -> None:
    cleaned: list[str] = []
    with pytest.raises(TimeoutError):
        asyncio.run(within(0.001, never(cleaned)))
    assert cleaned == ["cleaned"]


def test_an_error_of_the_work_is_the_callers() -> None:
    with pytest.raises(LookupError, match="lost"):
        asyncio.run(within(60.0, failing()))


def test_a_cancelled_caller_cancels_the_work() -> None:
    cleaned: list[str] = []

    async def cancelled() -> None:
        task = asyncio.create_task(within(60.0, never(cleaned)))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert cleaned == ["cleaned"]


def test_any_awaitable_is_work() -> None:
    async def future() -> str:
        made: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(made.set_result, "done")
        return await within(60.0, made)

    assert asyncio.run(future()) == "done"
