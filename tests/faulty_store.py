"""A store some of whose calls fail, each in one of the ways in which real stores fail."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import Literal, TypeVar

from heedful import Database, StoreError
from heedful.memory.database import in_daemon_thread

T = TypeVar("T")
StoreFault = Literal["raises", "hangs", "locked", "read-only"]
STORE_FAULTS: tuple[StoreFault, ...] = ("raises", "hangs", "locked", "read-only")
Work = Callable[[sqlite3.Connection], T]
Opened = Callable[[], AbstractContextManager[sqlite3.Connection]]


class FaultyDatabase(Database):
    """Asks `faults` before every call whether it fails, and how; None: it works."""

    def __init__(self, path: Path, faults: Iterator[StoreFault | None], *, wait: float = 0.05) -> None:
        super().__init__(path, wait=wait)
        self.calls: Counter[str] = Counter()
        self._faults = faults

    async def write(self, work: Work[T]) -> T:
        return await self._through(work, self.writing)

    async def read(self, work: Work[T]) -> T:
        return await self._through(work, self.reading)

    async def _through(self, work: Work[T], opened: Opened) -> T:
        fault = next(self._faults)
        self.calls[fault or "works"] += 1
        if fault == "raises":
            raise StoreError(f"the store {self.path} failed: disk I/O error")
        if fault == "hangs":
            await asyncio.Event().wait()

        def run() -> T:
            with ExitStack() as stack:
                stack.enter_context(self._lock)
                if fault == "locked":
                    stack.enter_context(self._locked())
                connection = stack.enter_context(opened())
                return _only_read(connection, work) if fault == "read-only" else work(connection)

        return await in_daemon_thread(run)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Another connection writes, as another process might."""
        with closing(sqlite3.connect(self.path, isolation_level=None, timeout=5)) as other:
            other.execute("BEGIN IMMEDIATE").close()
            yield


def _only_read(connection: sqlite3.Connection, work: Work[T]) -> T:
    """Run `work` as if the disk were read-only."""
    connection.execute("PRAGMA query_only=ON").close()
    try:
        return work(connection)
    finally:
        connection.execute("PRAGMA query_only=OFF").close()
