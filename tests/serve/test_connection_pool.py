"""Connections to the upstream: whole and streamed replies, kept alive, broken, late, compressed."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable

import pytest

from heedful.errors import UsageError
from heedful.serve.connection_pool import ConnectionPool
from tests.faulty import (
    Exchange,
    FaultyServer,
    Play,
    babbles,
    body,
    cuts_the_stream,
    hangs,
    hangs_up,
    in_turn,
    truncates,
)

Asking = Callable[[ConnectionPool], Awaitable[object]]


def asked(play: Play | list[Play], asking: Asking, seconds: float = 20.0, **headers: str) -> object:
    """The result of asking a server that answers in this way."""

    async def run() -> object:
        pool = ConnectionPool(url=server.url, headers=headers, limit=2, seconds=seconds)
        try:
            return await asking(pool)
        finally:
            pool.close()

    with FaultyServer(in_turn(*(play if isinstance(play, list) else [play]))) as server:
        return asyncio.run(run())


async def whole(pool: ConnectionPool) -> bytes:
    return (await pool.whole("POST", "/x", b"{}")).body


def chunked(*pieces: bytes) -> Play:
    chunks = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (*pieces, b"")]
    return lambda exchange: exchange.send({"Transfer-Encoding": "chunked"}, *chunks)


def until_closed(exchange: Exchange) -> None:
    """A reply without a length, which ends with its connection."""
    exchange.send({"Connection": "close"}, b"all ", b"of it")
    exchange.end()


@pytest.mark.parametrize(
    ("play", "content"),
    [
        (body(b"hello"), b"hello"),
        (body(b""), b""),
        (chunked(b"hel", b"lo"), b"hello"),
        (until_closed, b"all of it"),
        (body(gzip.compress(b"small"), 200, **{"Content-Encoding": "gzip"}), b"small"),
    ],
)
def test_a_whole_reply_is_read_whatever_marks_its_end(play: Play, content: bytes) -> None:
    assert asked(play, whole) == content


@pytest.mark.parametrize("play", [truncates, cuts_the_stream, hangs_up, babbles])
def test_a_broken_reply_is_an_error_of_the_connection(play: Play) -> None:
    with pytest.raises(OSError, match="reply"):
        asked(play, whole)


def test_a_reply_that_does_not_come_is_a_timeout() -> None:
    with pytest.raises(TimeoutError):
        asked(hangs, whole, seconds=0.05)


def test_a_connection_is_used_again_and_one_that_broke_is_not() -> None:
    async def thrice(pool: ConnectionPool) -> tuple[bytes, int, bytes]:
        await whole(pool)
        first = list(pool._idle)
        await whole(pool)
        kept = len({*first, *pool._idle})
        with pytest.raises(OSError, match="reply"):
            await whole(pool)
        assert not pool._idle
        return b"", kept, await whole(pool)

    plays = [body(b"one"), body(b"two"), truncates, body(b"three")]
    assert asked(plays, thrice) == (b"", 1, b"three")


def test_a_stream_is_read_in_pieces_and_left_early() -> None:
    async def streamed(pool: ConnectionPool) -> tuple[int, bytes]:
        async with pool.opened("POST", "/x", b"{}") as reply:
            pieces = []
            while piece := await reply.piece():
                pieces.append(piece)
        async with pool.opened("POST", "/x", b"{}") as reply:
            return reply.status, b"".join(pieces)

    assert asked(chunked(b"a" * 2_000_000, b"b"), streamed) == (200, b"a" * 2_000_000 + b"b")


def test_a_streamed_reply_can_be_read_whole_beyond_the_buffer() -> None:
    async def streamed(pool: ConnectionPool) -> int:
        async with pool.opened("POST", "/x", b"{}") as reply:
            return len(await reply.whole())

    assert asked(body(b"a" * 3_000_000), streamed) == 3_000_000


def test_more_requests_than_connections_wait_for_their_turn() -> None:
    async def many(pool: ConnectionPool) -> int:
        return len(await asyncio.gather(*(whole(pool) for _ in range(10))))

    assert asked(body(b"x"), many) == 10


def test_a_header_that_would_split_the_request_is_refused() -> None:
    with pytest.raises(UsageError, match="unprintable"):
        asked(body(b"x"), whole, odd="a\r\nhost: elsewhere")
