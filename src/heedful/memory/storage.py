"""Where memory is kept: a SQLite file or a Postgres database, chosen by its place."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from heedful.errors import UsageError
from heedful.memory.database import WAIT_SECONDS, Database, default_path
from heedful.memory.postgres.address import is_misspelt, is_postgres
from heedful.memory.sqlite import SqliteStore
from heedful.ports import DecisionReader, FeedbackReader, Journal, Store
from heedful.records import Decision, Feedback
from heedful.types import Entry

if TYPE_CHECKING:
    from heedful.memory.feedback import FeedbackReceipt
    from heedful.memory.index import Embedder, TextVectors
    from heedful.memory.purge import PurgeCount, PurgeOrder
    from heedful.memory.stored import LargeRecall

IN_MEMORY = ":memory:"
"""SQLite's name for a database without a file."""
SQLITE = "sqlite:"


class DecisionJournal(Journal, DecisionReader, Protocol):
    """The decisions of a storage."""

    async def record_all(self, decisions: Sequence[Decision]) -> None:
        """Store several decisions in one transaction."""
        ...

    async def announced(self) -> int:
        """How many trials were begun; those without a decision were interrupted."""
        ...


class FeedbackBox(FeedbackReader, Protocol):
    """The feedback of a storage."""

    async def give(self, feedback: Feedback) -> "FeedbackReceipt":
        """Store feedback and its evidence together; another value of the same kind replaces the old one."""
        ...


class Storage(Store, Protocol):
    """A store with the decisions, feedback and vectors beside its banks: all that a command needs."""

    @property
    def location(self) -> str:
        """The file or URL, without secrets."""
        ...

    @property
    def journal(self) -> DecisionJournal: ...

    @property
    def feedback(self) -> FeedbackBox: ...

    async def named(self, bank: str, ids: Sequence[str]) -> list[Entry]:
        """Those of the named entries that a bank has."""
        ...

    async def purge(self, order: "PurgeOrder") -> "PurgeCount":
        """Delete texts for good."""
        ...

    async def purge_count(self, order: "PurgeOrder") -> "PurgeCount":
        """What an order would delete."""
        ...

    async def ready(self) -> None:
        """Raise `StoreError` unless the storage answers and can be written."""
        ...

    async def condition(self) -> str:
        """What an operator should know; raises `StoreError` if the storage is damaged."""
        ...

    def vector_cache(self, on_progress: "Callable[[int, int], None] | None" = None) -> "TextVectors": ...

    def open_large(
        self,
        name: str,
        *,
        threshold: float,
        embedder: "Callable[[], Embedder] | None",
        above: int,
        grows: bool = True,
        cache: "TextVectors | None" = None,
        on_progress: "Callable[[int, int], None] | None" = None,
    ) -> "LargeRecall | None":
        """The bank for recall by meaning, if it has more than `above` entries."""
        ...

    def reopened(self) -> "Storage":
        """The same place with connections of its own."""
        ...


def default_place() -> str:
    """Where memory is kept unless a command says otherwise: HEEDFUL_STORE, or the default file."""
    return os.environ.get("HEEDFUL_STORE") or str(default_path())


def exists(place: str) -> bool:
    """Whether a place can be opened without making a file."""
    return is_postgres(place) or _file(place).exists()


def names_new_file(place: str | None) -> bool:
    """Whether --store or HEEDFUL_STORE names a file that does not exist yet; the default never counts."""
    place = default_place() if place is None else place
    return place != str(default_path()) and not exists(place)


def open_storage(
    place: str | Path | None = None, *, wait: float | None = None, moving: bool = False
) -> Storage:
    """Open a file of SQLite or a URL of Postgres; `wait` limits how long a call waits for it, in seconds.

    A store that was moved in part is refused, unless `moving`: retired entries would be active in it.
    """
    place = default_place() if place is None else str(place)
    if is_postgres(place):
        from heedful.memory.postgres.database import WAIT_SECONDS as POSTGRES_WAIT
        from heedful.memory.postgres.database import PostgresDatabase
        from heedful.memory.postgres.store import PostgresStore

        seconds = POSTGRES_WAIT if wait is None else wait
        return PostgresStore(PostgresDatabase(place, wait=seconds, moving=moving))
    return SqliteStore(Database(_file(place), wait=WAIT_SECONDS if wait is None else wait, moving=moving))


def _file(place: str) -> Path:
    if is_misspelt(place):
        raise UsageError(
            "the store is no file and no URL of Postgres; write postgresql://USER:PASSWORD@HOST:5432/DATABASE"
        )
    if not place.removeprefix(SQLITE):
        raise UsageError("the store has no name; give a file, or a URL with postgresql://")
    if "://" in place:
        scheme = place.partition("://")[0]
        raise UsageError(f"--store does not know {scheme}://; give a file, or a URL with postgresql://")
    return Path(place.removeprefix(SQLITE))
