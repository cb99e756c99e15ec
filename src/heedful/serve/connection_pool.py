"""The connections to one base URL: kept alive, limited in number, with a time limit for each exchange."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from heedful.errors import UsageError
from heedful.serve.connection import Connection, HeaderPairs

IDLE_SECONDS = 15.0
"""A connection that was idle for longer is not used again: the upstream may be about to close it."""
OWN_HEADERS = frozenset({"host", "connection", "content-length", "transfer-encoding", "accept-encoding"})
"""Headers that belong to the connection."""


@dataclass(frozen=True, slots=True)
class WholeReply:
    """A complete reply as it came."""

    status: int
    headers: HeaderPairs
    body: bytes


@dataclass(slots=True)
class ConnectionPool:
    """Exchanges requests and replies; failures are `OSError`, of which `TimeoutError` is one."""

    url: str
    """The base URL."""
    headers: Mapping[str, str]
    """Of every request."""
    limit: int
    """Number of connections that are in use at once."""
    seconds: float
    """Time limit of one exchange."""
    _idle: list[Connection] = field(default_factory=list)
    _slots: asyncio.Semaphore = field(init=False)
    _tls: ssl.SSLContext | None = None
    _heads: dict[tuple[str, str], bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.limit)

    async def whole(self, method: str, path: str, body: bytes) -> WholeReply:
        """Send a request and read its whole reply."""
        async with self._slots:
            connection = await self._connection()
            timer = self._limit_time(connection)
            try:
                connection.send(self._request(method, path, body), streaming=False)
                content = await connection.whole()
                return WholeReply(connection.status, connection.headers, content)
            finally:
                timer.cancel()
                self._give_back(connection)

    @asynccontextmanager
    async def opened(self, method: str, path: str, body: bytes) -> AsyncIterator[Connection]:
        """Send a request; its body is still to be read when the block begins."""
        async with self._slots:
            connection = await self._connection()
            timer = self._limit_time(connection)
            try:
                connection.send(self._request(method, path, body), streaming=True)
                await connection.head()
                yield connection
            finally:
                timer.cancel()
                self._give_back(connection)

    def close(self) -> None:
        """Close the connections that are not in use."""
        while self._idle:
            self._idle.pop().abort()

    def _limit_time(self, connection: Connection) -> asyncio.TimerHandle:
        late = TimeoutError(f"no reply within {self.seconds:g} s")
        return asyncio.get_running_loop().call_later(self.seconds, connection.fail, late)

    async def _connection(self) -> Connection:
        loop = asyncio.get_running_loop()
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable and loop.time() - connection.idle_since < IDLE_SECONDS:
                return connection
            connection.abort()
        parts = urlsplit(self.url)
        secure = parts.scheme == "https"
        if secure and self._tls is None:
            self._tls = await asyncio.to_thread(ssl.create_default_context)
        port = parts.port or (443 if secure else 80)
        async with asyncio.timeout(self.seconds):
            _, connection = await loop.create_connection(
                lambda: Connection(loop), parts.hostname or "", port, ssl=self._tls if secure else None
            )
        return connection

    def _give_back(self, connection: Connection) -> None:
        """Keep a connection whose exchange is over; any other is closed, and the upstream stops working."""
        if connection.reusable:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
        else:
            connection.abort()

    def _request(self, method: str, path: str, body: bytes) -> bytes:
        head = self._heads.get((method, path))
        if head is None:
            head = self._heads[method, path] = self._head(method, path)
        return b"%b%d\r\n\r\n%b" % (head, len(body), body)

    def _head(self, method: str, path: str) -> bytes:
        """The head of a request up to its length."""
        parts = urlsplit(self.url)
        target, host = quote(parts.path + path, safe="/%~!$&'()*+,;=:@"), parts.netloc.encode("idna").decode()
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Accept-Encoding: identity"]
        for name, value in self.headers.items():
            if not f"{name}{value}".isprintable():
                raise UsageError(f"the header {name!r} has an unprintable character; set it to plain text")
            if name.lower() not in OWN_HEADERS:
                lines.append(f"{name}: {value}")
        return "\r\n".join([*lines, "Content-Length: "]).encode()
