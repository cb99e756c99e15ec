import asyncio

import pytest

from heedful.cli.waiting import with_notice


def test_only_work_that_takes_long_gets_a_notice() -> None:
    written: list[str] = []

    async def quick() -> int:
        return 7

    async def both() -> list[int]:
        noticed = asyncio.Event()

        async def slow() -> int:
            await noticed.wait()
            return 8

        def write(notice: str) -> None:
            written.append(notice)
            noticed.set()

        first = await with_notice(quick(), "quick", 60.0, write)
        return [first, await with_notice(slow(), "still waiting", 0.0, write)]

    assert asyncio.run(both()) == [7, 8]
    assert written == ["still waiting"]


def test_an_error_of_the_work_passes_through() -> None:
    async def fails() -> None:
        raise ValueError("no luck")

    with pytest.raises(ValueError, match="no luck"):
        asyncio.run(with_notice(fails(), "never", 60.0))
