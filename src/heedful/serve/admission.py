"""Limits of a request: size, headers, time, and how many run at once."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from heedful.serve.callers import Caller
from heedful.serve.refusal import RefusalError
from heedful.time_limit import within

if TYPE_CHECKING:
    from starlette.types import Receive

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
Headers = dict[bytes, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeLimits:
    """Limits of one request, and of all together."""

    body_bytes: int = 4_000_000
    header_bytes: int = 32_000
    body_seconds: float = 30.0
    """Time to receive the body."""
    seconds: float = 600.0
    """Time to answer."""
    at_once: int = 256
    """Number of chat requests in progress."""


class ClientGoneError(Exception):
    """The client closed its connection."""


@dataclass(slots=True)
class Admission:
    """Counts the requests in progress, and refuses those beyond the limits."""

    limits: ServeLimits
    keyless: bool
    """Whether callers need no key, so that only the machine itself may call."""
    running: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def place(self, caller: Caller) -> Iterator[None]:
        """A place for one request of a caller."""
        most = caller.rights.at_once
        if most is not None and self.running[caller.name] >= most:
            raise RefusalError(429, f"this key already has {most} requests in progress; try again")
        if self.running.total() >= self.limits.at_once:
            raise RefusalError(503, f"{self.limits.at_once} requests are already in progress; try again")
        self.running[caller.name] += 1
        try:
            yield
        finally:
            self.running[caller.name] -= 1

    def check_headers(self, pairs: Iterable[tuple[bytes, bytes]], headers: Headers) -> None:
        """Refuse headers that are too large, and calls of foreign web pages to a server without keys."""
        size = sum([len(name) + len(value) for name, value in pairs])
        if size > self.limits.header_bytes:
            raise RefusalError(431, f"the headers have {size} bytes; send at most {self.limits.header_bytes}")
        if not self.keyless:
            return
        origin, host = headers.get(b"origin"), headers.get(b"host", b"localhost")
        if not _is_loopback(b"//" + host) or (origin and not _is_loopback(origin)):
            raise RefusalError(403, "a server without keys answers this machine only; start it with --keys")

    async def body(self, receive: "Receive", headers: Headers) -> bytes:
        """The body of a request, within its limits of size and time."""
        seconds = self.limits.body_seconds
        try:
            return await within(seconds, self._body(receive, headers))
        except TimeoutError as error:
            late = f"the body did not arrive within {seconds:g} s; send it again"
            raise RefusalError(408, late) from error

    async def _body(self, receive: "Receive", headers: Headers) -> bytes:
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self.limits.body_bytes:
            raise self._too_large()
        pieces, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            more = message.get("more_body", False)
            if size > self.limits.body_bytes:
                raise self._too_large()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _too_large(self) -> RefusalError:
        return RefusalError(413, f"the body has more than {self.limits.body_bytes} bytes; shorten it")


@lru_cache(maxsize=64)
def _is_loopback(url: bytes) -> bool:
    """Whether a URL names this machine; clients send the same few with every request."""
    try:
        return urlsplit(url.decode("latin-1")).hostname in LOOPBACK
    except ValueError:
        return False
