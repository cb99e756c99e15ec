"""A model in a process of its own, reached through a pipe."""

import asyncio
import multiprocessing
import signal
import threading
from contextlib import suppress
from itertools import count
from multiprocessing.connection import Connection

from heedful.errors import ModelError
from heedful.models.remote import MakeModel, RemoteDecoder, Reply, opened
from heedful.types import Decode, Prompt, Traits

Job = tuple[int, Prompt]
Batch = list[tuple[int, Reply]]
SECONDS_TO_END = 5.0


class ProcessModel:
    """Decodes in a process; one that dies fails its decodes, and the next decode starts another."""

    def __init__(self, make: MakeModel, traits: Traits) -> None:
        """`make` runs in the process and must be picklable."""
        self.traits = traits
        self._make = make
        self._process: _Process | None = None

    @property
    def pid(self) -> int | None:
        """The id of the running process."""
        return None if self._process is None else self._process.pid

    async def decode(self, prompt: Prompt) -> Decode:
        if self._process is None or self._process.ended:
            self._process = _Process(self._make)
        return opened(await self._process.ask(prompt))

    async def aclose(self) -> None:
        """End the process; the next decode starts another."""
        process, self._process = self._process, None
        if process is not None:
            await asyncio.to_thread(process.end)


class _Process:
    """A running process with the decodes that it owes."""

    def __init__(self, make: MakeModel) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, make), daemon=True)
        self._process.start()
        theirs.close()
        self._numbers = count()
        self._owed: dict[int, asyncio.Future[Reply]] = {}
        self.ended = False
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def pid(self) -> int | None:
        return self._process.pid

    async def ask(self, prompt: Prompt) -> Reply:
        number = next(self._numbers)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._owed[number] = future
        try:
            self._pipe.send((number, prompt))
            if self.ended:  # it may have ended before this prompt was noted
                return self._loss()
            return await future
        except OSError:
            return self._loss()
        finally:
            self._owed.pop(number, None)

    def end(self) -> None:
        self._process.terminate()
        self._process.join(SECONDS_TO_END)

    def _read(self) -> None:
        """Hand over batches of replies until the process ends."""
        with suppress(EOFError, OSError):
            while True:
                batch: Batch = self._pipe.recv()
                for number, reply in batch:
                    self._settle(number, reply)
        self.ended = True
        self._process.join(SECONDS_TO_END)
        for number in list(self._owed):
            self._settle(number, self._loss())

    def _settle(self, number: int, reply: Reply) -> None:
        future = self._owed.get(number)
        if future is not None:
            with suppress(RuntimeError):  # the loop has ended
                future.get_loop().call_soon_threadsafe(_set, future, reply)

    def _loss(self) -> ModelError:
        return ModelError(f"the worker process {self.pid} ended with exit code {self._process.exitcode}")


def _set(future: "asyncio.Future[Reply]", reply: Reply) -> None:
    if not future.done():
        future.set_result(reply)


def serve(pipe: "Connection[Batch, Job]", make: MakeModel) -> None:
    """The work of the process: decode what comes through the pipe until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends this one
    asyncio.run(_serve(pipe, RemoteDecoder(make)))


async def _serve(pipe: "Connection[Batch, Job]", decoder: RemoteDecoder) -> None:
    loop, jobs = asyncio.get_running_loop(), asyncio.Queue[Job | None]()
    finished = asyncio.Queue[tuple[int, Reply]]()

    def read() -> None:
        with suppress(EOFError, OSError):
            while True:
                loop.call_soon_threadsafe(jobs.put_nowait, pipe.recv())
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(jobs.put_nowait, None)

    async def work(number: int, prompt: Prompt) -> None:
        finished.put_nowait((number, await decoder.reply(prompt)))

    threading.Thread(target=read, daemon=True).start()
    tasks: set[asyncio.Task[None]] = {asyncio.create_task(_send(pipe, finished))}
    while (job := await jobs.get()) is not None:
        task = asyncio.create_task(work(*job))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def _send(pipe: "Connection[Batch, Job]", finished: "asyncio.Queue[tuple[int, Reply]]") -> None:
    """Send all replies that are ready at once, as one batch."""
    while True:
        batch = [await finished.get()]
        while not finished.empty():
            batch.append(finished.get_nowait())
        pipe.send(batch)
