"""A stream whose chunks were held back until the decision."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Self


class HeldStream:
    """Yields the chunks of the chosen pass, as the client's own stream would."""

    def __init__(self, chunks: Sequence[Any], heedful: object) -> None:
        self.heedful = heedful
        self._chunks = iter(chunks)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._chunks)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop the chunks that are left."""
        self._chunks = iter(())


class HeldAsyncStream:
    """The same for an async client."""

    def __init__(self, chunks: Sequence[Any], heedful: object) -> None:
        self.heedful = heedful
        self._chunks = iter(chunks)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        for chunk in self._chunks:
            return chunk
        raise StopAsyncIteration

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Drop the chunks that are left."""
        self._chunks = iter(())

    aclose = close
