"""A reply's head and body leave in one write."""

import asyncio
from typing import Any, cast

from heedful.serve.gathered_writes import GatheringTransport


class Written:
    """A transport that remembers what reached it."""

    def __init__(self) -> None:
        self.calls: list[bytes | str] = []

    def write(self, data: bytes) -> None:
        self.calls.append(data)

    def close(self) -> None:
        self.calls.append("closed")

    def get_extra_info(self, name: str) -> str:
        return f"the {name}"


def gathering(written: Written) -> GatheringTransport:
    return GatheringTransport(cast(Any, written), asyncio.get_running_loop())


def test_what_is_written_in_one_turn_leaves_together() -> None:
    async def story() -> list[bytes | str]:
        written = Written()
        transport = gathering(written)
        transport.write(b"head ")
        transport.write(b"body")
        assert written.calls == []
        await asyncio.sleep(0)
        transport.write(b"next")
        await asyncio.sleep(0)
        return written.calls

    assert asyncio.run(story()) == [b"head body", b"next"]


def test_closing_sends_what_waits_first_and_once() -> None:
    async def story() -> list[bytes | str]:
        written = Written()
        transport = gathering(written)
        transport.write(b"head ")
        transport.write(b"half")
        transport.close()
        await asyncio.sleep(0)
        return written.calls

    assert asyncio.run(story()) == [b"head half", "closed"]


def test_everything_else_is_the_transports_own() -> None:
    async def story() -> object:
        return gathering(Written()).get_extra_info("peername")

    assert asyncio.run(story()) == "the peername"
