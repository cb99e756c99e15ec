"""Announcements of changes from Postgres, as they happen."""

import asyncio
import threading
from collections import Counter

from heedful.errors import StoreError
from heedful.memory.postgres.database import PostgresDatabase, connect
from heedful.memory.postgres.driver import psycopg

AGAIN_SECONDS = 0.5
"""Between two attempts to listen."""


class ChangeFeed:
    """Listens on a connection of its own, which is replaced when it breaks.

    It only makes changes known sooner. Announcements of a broken connection are lost, so everything counts as
    changed when the connection breaks and when it is back, and banks also ask for revisions regularly.
    """

    def __init__(self, database: PostgresDatabase, channel: str) -> None:
        self._begin = database.begin
        self._options, self._url = database.options, database.url
        self._channel = channel
        self._news = threading.Condition()
        self._started = False
        self._announced: Counter[str] = Counter()
        self._interruptions = 0

    def changes(self, name: str) -> int:
        """A number that becomes another one when a change was announced, or may have been; the first call
        starts to listen."""
        with self._news:
            if not self._started:
                self._started = True
                self._begin(self._listen())
            return self._announced[name] + self._interruptions

    def next_change(self, name: str, since: int, seconds: float) -> int:
        """Wait, in a thread, until the number is not `since` any more; return it."""
        with self._news:
            self._news.wait_for(lambda: self.changes(name) != since, seconds)
            return self.changes(name)

    async def _listen(self) -> None:
        while True:
            try:
                await self._hear()
            except (psycopg.Error, StoreError):
                self._interrupted()
            await asyncio.sleep(AGAIN_SECONDS)

    async def _hear(self) -> None:
        """Count announcements until the connection breaks."""
        async with await connect(self._options, self._url) as connection:
            await connection.execute(f"LISTEN {self._channel}".encode())
            self._interrupted()
            async for announcement in connection.notifies():
                with self._news:
                    self._announced[announcement.payload] += 1
                    self._news.notify_all()

    def _interrupted(self) -> None:
        """Announcements may have been lost."""
        with self._news:
            self._interruptions += 1
            self._news.notify_all()
