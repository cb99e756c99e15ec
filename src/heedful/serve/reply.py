"""Replies to the client: whole bodies, relayed streams and server-sent events."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.types import Send

JSON = "application/json"
EVENTS = "text/event-stream; charset=utf-8"
KEEP_ALIVE = b": heedful\n\n"


@dataclass(slots=True)
class Reply:
    """One reply, sent piece by piece."""

    send: "Send"
    started: bool = False
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    failure: int = 0
    """The status that describes a reply which failed after its headers were sent; 0: none."""

    async def whole(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a complete reply."""
        await self.start(status, {**headers, "content-length": str(len(body))})
        await self.send({"type": "http.response.body", "body": body})

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send status and headers; pieces follow."""
        self.started, self.status, self.headers = True, status, headers
        pairs = [(name.encode("latin-1"), _value(value)) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": pairs})

    async def piece(self, body: bytes) -> None:
        await self.send({"type": "http.response.body", "body": body, "more_body": True})

    async def end(self) -> None:
        await self.send({"type": "http.response.body", "body": b""})


def _value(value: str) -> bytes:
    return value.encode("latin-1", "replace").replace(b"\n", b" ").replace(b"\r", b" ")


def event(data: bytes) -> bytes:
    """A server-sent event."""
    return b"data: " + data + b"\n\n"


async def settled(work: "asyncio.Future[Any]", seconds: float) -> bool:
    """Wait for work at most some seconds; whether it is done."""
    await asyncio.wait({work}, timeout=seconds)
    return work.done()


async def abandoned(work: "asyncio.Task[Any]") -> None:
    """Cancel work and wait until it ended."""
    work.cancel()
    with suppress(asyncio.CancelledError, Exception):  # its failure concerns nobody any more
        await work
