"""A connection to the upstream: HTTP/1.1, one request at a time, the reply as it arrives."""

import asyncio
import zlib
from typing import cast

from heedful.extras import importing

HeaderPairs = list[tuple[bytes, bytes]]
MOST_BUFFERED = 1_000_000
"""Bytes of a streamed reply that wait for a slow reader before the upstream has to wait too."""
INFLATED = frozenset({b"gzip", b"x-gzip", b"deflate"})
ANY_ZLIB_HEADER = 47
"""zlib's word for: find out whether it is gzip or deflate."""


class Connection(asyncio.Protocol):
    """Sends a request and collects its reply.

    The parser calls the methods `on_…`; a reader waits for the end, or in a stream for each piece.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        with importing("serve"):
            from httptools import HttpResponseParser

        self._loop = loop
        self._parser = HttpResponseParser(self)
        self._waiter: asyncio.Future[None] | None = None
        self.idle_since = 0.0
        self._begin(streaming=False)

    def _begin(self, streaming: bool) -> None:
        self.status = 0
        self.headers: HeaderPairs = []
        self._pieces: list[bytes] = []
        self._error: Exception | None = None
        self._inflate: zlib._Decompress | None = None
        self._streaming = streaming
        self.ended = self._reusable = self._paused = False

    def send(self, request: bytes, *, streaming: bool) -> None:
        """Begin an exchange."""
        self._begin(streaming)
        self._transport.write(request)

    async def whole(self) -> bytes:
        """The body, or the rest of it, once it is complete."""
        self._streaming = False
        self._resume()
        while not self.ended:
            await self._change()
        return b"".join(self._pieces)

    async def head(self) -> None:
        """Wait for status and headers."""
        while not self.status and not self.ended:
            await self._change()

    async def piece(self) -> bytes:
        """The next bytes of the body; empty at its end."""
        while not self._pieces and not self.ended:
            await self._change()
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._resume()
        return data

    @property
    def reusable(self) -> bool:
        """Whether the exchange is over and another one may follow."""
        return self.ended and self._reusable and not self._transport.is_closing()

    def fail(self, error: Exception) -> None:
        """End the exchange; its reader gets the error unless the reply is complete."""
        if self._error is None and not self.ended:
            self._error = error
            self._wake()

    def abort(self) -> None:
        """Close at once, which cancels the work at the upstream."""
        self._transport.abort()

    async def _change(self) -> None:
        if self._error is None:
            self._waiter = self._loop.create_future()
            await self._waiter
        if self._error is not None and not self.ended:
            raise self._error

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            self._transport.resume_reading()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self.ended:  # nobody asked
            self.abort()
            return
        try:
            self._parser.feed_data(data)
        except Exception as error:  # the parser's own errors, or zlib's
            self._reusable = False
            self.fail(ConnectionError(f"the reply is not HTTP: {type(error).__name__}"))
        if self.ended or self._streaming:
            self._wake()
        if (
            self._streaming
            and not (self.ended or self._paused)
            and sum(map(len, self._pieces)) > MOST_BUFFERED
        ):
            self._paused = True
            self._transport.pause_reading()

    def connection_lost(self, error: Exception | None) -> None:
        delimited = {b"content-length", b"transfer-encoding"}.intersection(
            name.lower() for name, _ in self.headers
        )
        if self.status and not delimited and error is None:  # such a body ends with its connection
            self.ended = True
            self._wake()
        else:
            self.fail(error or ConnectionError("the connection closed before the reply was complete"))

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))
        if len(name) == 16 and name.lower() == b"content-encoding" and value.lower() in INFLATED:
            self._inflate = zlib.decompressobj(ANY_ZLIB_HEADER)

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:  # a notice before the reply
            self.headers.clear()
        else:
            self.status = status

    def on_body(self, piece: bytes) -> None:
        self._pieces.append(piece if self._inflate is None else self._inflate.decompress(piece))

    def on_message_complete(self) -> None:
        if self.status:
            if self._inflate is not None:
                self._pieces.append(self._inflate.flush())
            self.ended, self._reusable = True, self._parser.should_keep_alive()
