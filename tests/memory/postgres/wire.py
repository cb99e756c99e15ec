"""A wire to Postgres that can be cut in the middle of a COMMIT."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Cut = Literal["before", "after"]


@dataclass
class Wire:
    """Forwards connections; the next COMMIT ends all of them, before or after Postgres got it."""

    socket: Path
    port: int = 0
    cut: Cut | None = None
    cuts: int = field(default=0, init=False)
    _open: list[asyncio.StreamWriter] = field(default_factory=list, init=False)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, requests = await asyncio.open_unix_connection(self.socket)
        self._open.append(writer)
        replies = asyncio.create_task(self._answer(answers, writer))
        try:
            while data := await reader.read(65536):
                cut = self.cut if b"COMMIT" in data else None
                if cut is not None:
                    self.cut, self.cuts = None, self.cuts + 1
                    replies.cancel()
                    if cut == "after":
                        requests.write(data)
                        await answers.read(1)  # Postgres answers when the transaction is on disk
                    for other in self._open:
                        other.close()
                    return
                requests.write(data)
        finally:
            replies.cancel()
            writer.close()
            requests.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()


@contextmanager
def wire_to(folder: Path) -> Iterator[Wire]:
    """A wire to the Postgres in a folder, until the end of the block."""
    wire, loop = Wire(folder / ".s.PGSQL.5432"), asyncio.new_event_loop()

    async def begin() -> asyncio.Server:
        return await asyncio.start_server(wire.serve, "127.0.0.1", 0)

    server = loop.run_until_complete(begin())
    wire.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield wire
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(server: asyncio.Server) -> None:
    server.close()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)  # transports close in the next turn
