"""Say what a command waits for, if it takes long."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from heedful.cli.output import say

T = TypeVar("T")
NOTICE_SECONDS = 5.0


async def with_notice(
    work: Coroutine[Any, Any, T],
    notice: str,
    seconds: float = NOTICE_SECONDS,
    write: Callable[[str], None] = say,
) -> T:
    """The result of the work; if it takes longer than `seconds`, write the notice once."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            write(notice)
        return await task
    finally:
        task.cancel()
