"""Copy a store into an empty one of another kind, and prove that both have the same content."""

import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import msgspec

from heedful.errors import StoreError, UsageError
from heedful.memory.moved_tables import TABLES, MovedRow, MovedTable, MoveSide

BATCH = 1000
"""Rows that are copied in one transaction."""
OnMoved = Callable[[str, int, int], None]
"""Reports a table, and how many of its rows are copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedCount:
    """A table that is the same on both sides."""

    rows: int
    digest: str


async def move(
    source: MoveSide, target: MoveSide, on_moved: OnMoved | None = None, batch: int = BATCH
) -> dict[str, MovedCount]:
    """Copy what the target lacks, verify it, and return the tables by name.

    A move that was interrupted goes on where it stopped, because rows are copied in the order of their keys.
    """
    finished = await target.begun(source.location)
    if finished is None:
        await _refuse_filled(target)
        await target.note(source.location, finished=False)
    if not finished:
        for table in TABLES:
            await _copy(source, target, table, on_moved, batch)
    counts = {table.name: await _verified(source, target, table) for table in TABLES}
    await target.note(source.location, finished=True)
    return counts


async def _refuse_filled(target: MoveSide) -> None:
    for table in TABLES:
        if await target.last(table) is not None:
            raise UsageError(
                f"{target.location} already has {table.name}; a store can only be moved into an empty one"
            )


async def _copy(
    source: MoveSide, target: MoveSide, table: MovedTable, on_moved: OnMoved | None, batch: int
) -> None:
    total = await source.count(table) if on_moved is not None else 0
    done = await target.count(table) if on_moved is not None else 0
    async for rows in _batches(source, table, batch, await target.last(table)):
        await target.add(table, rows)
        done += len(rows)
        if on_moved is not None:
            on_moved(table.name, done, total)


async def _batches(
    side: MoveSide, table: MovedTable, size: int, after: MovedRow | None = None
) -> AsyncIterator[list[MovedRow]]:
    while rows := await side.rows(table, after, size):
        yield rows
        after = table.key_of(rows[-1])


async def _verified(source: MoveSide, target: MoveSide, table: MovedTable) -> MovedCount:
    there, here = await _content(source, table), await _content(target, table)
    if there != here:
        raise StoreError(
            f"{table.name} differ: {there.rows} rows in {source.location}, {here.rows} in {target.location}; "
            "if either was written to meanwhile, end its servers and move the source into an empty store"
        )
    return here


async def _content(side: MoveSide, table: MovedTable) -> MovedCount:
    content, rows = hashlib.sha256(), 0
    async for batch in _batches(side, table, BATCH):
        rows += len(batch)
        for row in batch:
            content.update(msgspec.json.encode(row) + b"\n")
    return MovedCount(rows=rows, digest=content.hexdigest())
