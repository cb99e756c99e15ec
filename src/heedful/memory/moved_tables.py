"""The tables that a move copies, with the same columns in every kind of store."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

MovedRow: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class MovedTable:
    """A table in the order of its key."""

    name: str
    key: tuple[str, ...]
    values: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.key, *self.values)

    def key_of(self, row: MovedRow) -> MovedRow:
        return row[: len(self.key)]


TABLES = (
    MovedTable(
        "entries",
        ("seq",),
        (
            *("at", "bank", "id", "digest", "kind", "text", "response", "tags", "source"),
            *("scope", "valid_from", "valid_until", "purged"),
        ),
    ),
    MovedTable("states", ("seq",), ("at", "bank", "id", "state", "reason", "actor", "grounds")),
    MovedTable("decisions", ("seq",), ("id", "at", "record")),
    MovedTable("feedback", ("decision", "kind"), ("at", "value", "metric", "grades")),
    MovedTable(
        "evidence",
        ("seq",),
        ("at", "bank", "entry", "version", "task", "utility", "decision", "feedback"),
    ),
    MovedTable("trials", ("decision",), ("at", "share", "allowed")),
    MovedTable("tombstones", ("seq",), ("at", "kind", "bank", "id", "digest")),
)
"""Vectors are a cache: the new store embeds texts again."""


def unfinished_move(store: str, source: str) -> str:
    """Why a store cannot be used before a move into it has ended."""
    return (
        f"only a part of {source} has been moved into {store}: run the same heedful store move again, "
        "or use another store"
    )


class MoveSide(Protocol):
    """A store as the source or the target of a move."""

    @property
    def location(self) -> str: ...

    async def rows(self, table: MovedTable, after: MovedRow | None, limit: int) -> list[MovedRow]:
        """The next rows in the order of the key, as tuples of `columns`."""
        ...

    async def add(self, table: MovedTable, rows: Sequence[MovedRow]) -> None:
        """Add rows in one transaction; those that exist stay."""
        ...

    async def last(self, table: MovedTable) -> MovedRow | None:
        """The greatest key; None if the table is empty."""
        ...

    async def count(self, table: MovedTable) -> int: ...

    async def begun(self, source: str) -> bool | None:
        """Whether a move from this source is finished; None if none was begun."""
        ...

    async def note(self, source: str, *, finished: bool) -> None:
        """Write down that a move was begun or finished."""
        ...


def page_query(table: MovedTable, after: MovedRow | None, sign: str, names: Sequence[str]) -> str:
    """The next rows; `names` are the columns as this database calls them, the key first."""
    key = ", ".join(names[: len(table.key)])
    where = "" if after is None else f"WHERE ({key}) > ({', '.join([sign] * len(table.key))})"
    return f"SELECT {', '.join(names)} FROM {table.name} {where} ORDER BY {key} LIMIT {sign}"
