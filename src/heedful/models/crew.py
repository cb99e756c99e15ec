"""The workers of a fleet in one event loop: who is up, how busy each one is, and when it is tried again."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from heedful.errors import HeedfulError, ModelError, RequestError, WorkersError
from heedful.types import Decode, Prompt

if TYPE_CHECKING:
    from heedful.models.fleet import Check, Worker

CHECKS = 4
"""After this many failed checks of every worker, the fleet gives up."""
FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0
"""Seconds until a worker that failed is checked again; doubled with each failure in a row."""
SLOW = 4.0
"""A prompt that takes this many times the usual time is also given to another worker that is free."""
LEAST_PATIENCE, FIRST_PATIENCE = 3.0, 10.0
"""Seconds before that happens, at least; and as long as the usual time is unknown."""
RECENT = 50
LOG = logging.getLogger("heedful")


@dataclass(slots=True, kw_only=True)
class Post:
    """A worker at work."""

    worker: "Worker"
    limit: float
    """Number of concurrent requests that it gets now; halved by a failure, and grows with each success."""
    busy: int = 0
    up: bool = False
    failures: int = 0
    """Failures in a row, of prompts and of checks."""
    failed_checks: int = 0
    error: str = ""

    @property
    def free(self) -> bool:
        return self.up and self.busy < int(self.limit)

    def slow_down(self) -> None:
        self.limit = max(1.0, self.limit / 2)

    def speed_up(self) -> None:
        self.limit = min(float(self.worker.capacity), self.limit + 1 / self.limit)


class Crew:
    """Gives prompts to free workers; a worker gets prompts only after it passed the check."""

    def __init__(
        self, workers: Sequence["Worker"], check: "Check", sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        self._posts = [Post(worker=worker, limit=float(worker.capacity)) for worker in workers]
        self._check = check
        self._sleep = sleep
        self._seconds: deque[float] = deque(maxlen=RECENT)
        self._waiters: list[asyncio.Future[None]] = []
        self._fatal: HeedfulError | None = None
        self._checks = {asyncio.create_task(self._admit(post, 0.0)) for post in self._posts}

    @property
    def up(self) -> int:
        return sum(post.up for post in self._posts)

    async def close(self) -> None:
        """Stop checking workers."""
        checks = list(self._checks)
        for task in checks:
            task.cancel()
        await asyncio.gather(*checks, return_exceptions=True)

    async def decode(self, prompt: Prompt) -> Decode:
        """The first reply; a second worker is asked too if the first one is slow."""
        post = await self._take()
        tasks = {asyncio.create_task(self._ask(post, prompt)): post}
        timer = asyncio.create_task(self._wait())
        try:
            while True:
                await asyncio.wait({*tasks, timer}, return_when=asyncio.FIRST_COMPLETED)
                ended = [task for task in tasks if task.done()]
                good = [task for task in ended if task.exception() is None]
                if good or len(ended) == len(tasks):
                    self._blame_slow(tasks)
                    return (good or ended)[0].result()
                if timer.done():
                    if len(tasks) == 1 and (other := self._choose(tasks.values())) is not None:
                        other.busy += 1
                        tasks[asyncio.create_task(self._ask(other, prompt))] = other
                    timer = asyncio.create_task(self._wait())
        finally:
            await _cancel(*tasks, timer)

    async def _take(self) -> Post:
        """A free worker, as soon as there is one."""
        while True:
            if self._fatal is not None:
                raise self._fatal
            if (post := self._choose(())) is not None:
                post.busy += 1
                return post
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def _choose(self, taken: Collection[Post]) -> Post | None:
        """The free worker with the smallest share of its capacity in use."""
        free = [post for post in self._posts if post.free and all(post is not other for other in taken)]
        return min(free, key=lambda post: post.busy / post.limit, default=None)

    async def _ask(self, post: Post, prompt: Prompt) -> Decode:
        start = time.perf_counter()
        try:
            decode = await post.worker.model.decode(prompt)
        except RequestError:
            raise
        except ModelError as error:
            self._fail(post, error)
            raise
        finally:
            post.busy -= 1
            self._wake()
        post.failures = 0
        post.speed_up()
        self._seconds.append(time.perf_counter() - start)
        return decode

    def _fail(self, post: Post, error: ModelError) -> None:
        """Give a worker nothing until it passes the check again; requests under way may still succeed."""
        if post.up:
            post.up = False
            post.slow_down()
            self._check_later(post, error)

    def _check_later(self, post: Post, error: ModelError) -> None:
        post.failures += 1
        post.error = str(error)
        wait = FIRST_WAIT * 2.0 ** (post.failures - 1) if error.wait is None else error.wait
        task = asyncio.create_task(self._admit(post, min(wait, LONGEST_WAIT)))
        self._checks.add(task)
        task.add_done_callback(self._checks.discard)

    async def _admit(self, post: Post, wait: float) -> None:
        """Let a worker begin, or begin again, if it passes the check."""
        if wait:
            await self._sleep(wait)
        try:
            await self._check(post.worker)
        except ModelError as error:
            post.failed_checks += 1
            if post.failed_checks == 1:
                LOG.warning("%s does not answer, the other workers do its part: %s", post.worker.name, error)
            self._check_later(post, error)
            if all(not post.up and post.failed_checks >= CHECKS for post in self._posts):
                self._fatal = WorkersError(self._all_down())
        except HeedfulError as error:
            self._fatal = error
        else:
            if post.failed_checks:
                LOG.warning("%s answers again", post.worker.name)
            post.up, post.failed_checks = True, 0
        self._wake()

    def _all_down(self) -> str:
        listed = "; ".join(f"{post.worker.name}: {post.error}" for post in self._posts)
        return (
            f"no worker answers ({listed}); recorded passes are kept, start the workers and run the same "
            "command again"
        )

    async def _wait(self) -> None:
        usual = SLOW * median(self._seconds) if self._seconds else FIRST_PATIENCE
        await self._sleep(max(usual, LEAST_PATIENCE))

    def _blame_slow(self, tasks: dict["asyncio.Task[Decode]", Post]) -> None:
        """Give less to a worker that another one has overtaken."""
        first, *others = tasks
        if others and not first.done():
            tasks[first].slow_down()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


async def _cancel(*tasks: "asyncio.Task[Decode] | asyncio.Task[None]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
