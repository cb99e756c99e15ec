"""A journal that writes decisions in batches, off the path of the requests."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from heedful.errors import StoreError
from heedful.memory.storage import DecisionJournal
from heedful.records import Decision
from heedful.types import Trial

BATCH_SECONDS = 0.25
STORE_SECONDS = 30.0
"""A store that does not answer within this time has failed."""
BATCH = 500
"""Decisions in one transaction, so that it ends soon however many wait."""
LONGEST_PAUSE = 2.0
"""Seconds between two attempts to write to a store that keeps failing."""
MOST_WAITING = 20_000
"""Decisions that wait for a store that fails; beyond it the oldest are dropped."""
LAST_TRIES = 5
"""How often the last batch is tried when the server stops."""
LOG = logging.getLogger("heedful.serve")


@asynccontextmanager
async def answering_within(seconds: float) -> AsyncIterator[None]:
    """Treat a store that does not answer in time as one that failed."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise StoreError(f"the store did not answer within {seconds:g} s") from error


@dataclass(slots=True)
class BatchedJournal:
    """Records decisions soon; what `find` returned, or `flush` was called for, is on disk."""

    journal: DecisionJournal
    seconds: float = BATCH_SECONDS
    store_seconds: float = STORE_SECONDS
    dropped: int = 0
    """Decisions that were lost because the store kept failing, or because they cannot be written."""
    _waiting: list[Decision] = field(default_factory=list)
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _later: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Number of decisions that are not on disk yet."""
        return len(self._waiting)

    async def announce(self, decision: str, trial: Trial) -> None:
        """Store a trial's coin at once: nothing is decoded before it is durable."""
        await self.journal.announce(decision, trial)

    async def record(self, decision: Decision) -> None:
        """Keep a decision for the next batch."""
        self._waiting.append(decision)
        if len(self._waiting) > MOST_WAITING:
            del self._waiting[0]
            self.dropped += 1
        if self._later is None:
            self._later = asyncio.create_task(self._write_later())

    async def flush(self) -> None:
        """Write all decisions so far; they are on disk when this returns.

        A caller that is cancelled does not interrupt the batch, which would be written twice.
        """
        writing = asyncio.create_task(self._flush())
        writing.add_done_callback(_note_failure)
        await asyncio.shield(writing)

    async def _flush(self) -> None:
        newest = self._waiting[-1].id if self._waiting else ""
        async with self._writing:
            waiting = list(self._waiting)
            if not any(decision.id == newest for decision in waiting):
                return  # another caller's batch contained all of them
            for start in range(0, len(waiting), BATCH):
                await self._write(waiting[start : start + BATCH])

    async def _write(self, batch: Sequence[Decision]) -> None:
        """Write a batch; a decision that cannot be written does not keep back the others."""
        try:
            async with answering_within(self.store_seconds):  # a late write is not repeated by the next one
                await self.journal.record_all(batch)
        except StoreError:
            raise
        except Exception:  # a value that has no JSON, which only our own code can cause
            if len(batch) > 1:
                for decision in batch:
                    await self._write([decision])
                return
            LOG.exception("a decision cannot be written")
            self.dropped += 1
        done = {decision.id for decision in batch}
        self._waiting = [waiting for waiting in self._waiting if waiting.id not in done]

    async def find(self, decision: str) -> Decision:
        await self.flush()
        return await self.journal.find(decision)

    async def recent(self, limit: int) -> Sequence[Decision]:
        await self.flush()
        return await self.journal.recent(limit)

    async def purge(self, before: float) -> int:
        await self.flush()
        return await self.journal.purge(before)

    async def aclose(self) -> None:
        """Write what waits; the store stays open, because its owner closes it."""
        for _ in range(LAST_TRIES):
            try:
                await self.flush()
            except StoreError as error:
                LOG.warning("decisions are not written yet: %s", error)
            else:
                break
        if self._waiting:
            LOG.error("the server stops, and %d decisions are lost", len(self._waiting))
        if self._later is not None:
            self._later.cancel()
            await asyncio.gather(self._later, return_exceptions=True)

    async def _write_later(self) -> None:
        pause = self.seconds
        while self._waiting:
            await asyncio.sleep(pause)
            try:
                await self.flush()
            except StoreError as error:  # the decisions stay in the batch, and the next turn tries again
                pause = min(2 * pause, LONGEST_PAUSE)
                LOG.warning("decisions are not written yet: %s", error)
            else:
                pause = self.seconds
        self._later = None


def _note_failure(writing: asyncio.Task[None]) -> None:
    """Look at a failure, which nobody else does if the caller is gone; the decisions still wait."""
    if not writing.cancelled():
        writing.exception()
