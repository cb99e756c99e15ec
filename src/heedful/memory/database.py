"""The SQLite file that holds banks, evidence and decisions."""

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar, cast
from weakref import finalize

from heedful.errors import StoreError

SCHEMA_VERSION = 3
T = TypeVar("T")
WAIT_SECONDS = 30.0
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_NEXT_STEPS = {
    sqlite3.SQLITE_BUSY: "another process is using it: wait until it ends, and try again",
    sqlite3.SQLITE_READONLY: "this process may only read it: change its permissions, or use --store",
    sqlite3.SQLITE_CORRUPT: "the file is damaged: restore it from a backup",
    sqlite3.SQLITE_NOTADB: "restore it from a backup, or use another file",
}
SCHEMA = """
CREATE TABLE entries (
    seq INTEGER PRIMARY KEY, at REAL NOT NULL, bank TEXT NOT NULL, id TEXT NOT NULL, digest TEXT NOT NULL,
    kind TEXT NOT NULL, text TEXT NOT NULL, response TEXT NOT NULL, tags TEXT NOT NULL, source TEXT NOT NULL
);
CREATE INDEX entries_by_bank ON entries (bank, id);
CREATE TABLE states (
    seq INTEGER PRIMARY KEY, at REAL NOT NULL, bank TEXT NOT NULL, id TEXT NOT NULL,
    state TEXT NOT NULL, reason TEXT NOT NULL
);
CREATE INDEX states_by_bank ON states (bank, id);
CREATE TABLE evidence (
    seq INTEGER PRIMARY KEY, at REAL NOT NULL, bank TEXT NOT NULL, entry TEXT NOT NULL, version TEXT NOT NULL,
    task TEXT NOT NULL, utility REAL NOT NULL, decision TEXT NOT NULL
);
CREATE INDEX evidence_by_bank ON evidence (bank, entry);
CREATE TABLE decisions (id TEXT PRIMARY KEY, at REAL NOT NULL, record TEXT NOT NULL);
CREATE INDEX decisions_by_time ON decisions (at);
CREATE TABLE vectors (
    model TEXT NOT NULL, text TEXT NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (model, text)
);
"""
REVISIONS = """
CREATE INDEX entries_by_revision ON entries (bank, seq);
CREATE INDEX states_by_revision ON states (bank, seq);
"""
"""Since version 2: find a bank's newest change without reading the bank."""

LIVE_USE = """
ALTER TABLE entries ADD COLUMN scope TEXT NOT NULL DEFAULT '{}';
ALTER TABLE entries ADD COLUMN valid_from REAL;
ALTER TABLE entries ADD COLUMN valid_until REAL;
ALTER TABLE entries ADD COLUMN purged REAL;
ALTER TABLE evidence ADD COLUMN feedback INTEGER NOT NULL DEFAULT 0;
CREATE INDEX evidence_by_decision ON evidence (decision);
CREATE TABLE feedback (
    decision TEXT NOT NULL, kind TEXT NOT NULL, at REAL NOT NULL, value TEXT NOT NULL, metric TEXT NOT NULL,
    grades TEXT NOT NULL, PRIMARY KEY (decision, kind)
);
CREATE TABLE trials (
    decision TEXT PRIMARY KEY, at REAL NOT NULL, share REAL NOT NULL, allowed INTEGER NOT NULL
);
CREATE TABLE tombstones (
    seq INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, bank TEXT NOT NULL, id TEXT NOT NULL,
    digest TEXT NOT NULL
);
"""
"""Since version 3: scopes and times of entries, feedback, trials, and what is left of purged texts."""


def default_path() -> Path:
    """The store's location: in HEEDFUL_HOME, or in the platform's data folder."""
    if home := os.environ.get("HEEDFUL_HOME"):
        return Path(home).expanduser() / "heedful.db"
    from platformdirs import user_data_path

    return user_data_path("heedful", appauthor=False) / "heedful.db"


class Database:
    """One connection; a committed transaction is on disk (WAL, synchronous=FULL).

    A store that this process may not write is opened for reading.
    """

    def __init__(self, path: Path | str | None = None, *, wait: float = WAIT_SECONDS) -> None:
        """`wait` limits how long a write waits for another process, in seconds."""
        self.path = Path(path) if path is not None else default_path()
        self._lock = threading.RLock()
        try:
            self._connection = _open(self.path, wait)
            finalize(self, self._connection.close)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"cannot open the store {self.path}: {_reason(error)}") from error
        self._prepare()

    def _prepare(self) -> None:
        """Create or upgrade the tables; a store that is up to date is only read."""
        with self.reading() as connection:
            if connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION:
                return
        with self.writing() as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version > SCHEMA_VERSION:
                raise StoreError(
                    f"the store {self.path} was written by a newer version of heedful; upgrade heedful"
                )
            for before, statements in enumerate((SCHEMA, REVISIONS, LIVE_USE)):
                if version <= before:
                    for statement in statements.split(";"):
                        connection.execute(statement)
            connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a transaction, outside the event loop; its writes are on disk when this returns."""

        def writing() -> T:
            with self.writing() as connection:
                return work(connection)

        return await _in_thread(writing)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` outside the event loop; it may only read."""

        def reading() -> T:
            with self.reading() as connection:
                return work(connection)

        return await _in_thread(reading)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all changes are written, or none."""
        with self._lock, self._store_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # a full disk ends the transaction by itself
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._store_errors():
            yield self._connection

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"the store {self.path} failed: {_reason(error)}") from error

    def close(self) -> None:
        self._connection.close()


async def _in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a thread that neither the event loop nor the process waits for when it ends.

    A store that another process keeps locked would otherwise delay an answer that is already there.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(cast(T, result))

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except BaseException as error:
            failure = error
        with suppress(RuntimeError):  # the event loop has ended: nobody waits
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, daemon=True).start()
    return await done


def _open(path: Path, wait: float) -> sqlite3.Connection:
    """Open the file to write, or else to read: its folder, the file or the disk may be read-only."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = _connect(path, wait)
        _use_wal(connection)
        connection.execute("PRAGMA synchronous=FULL")
    except (OSError, sqlite3.OperationalError) as error:
        if not path.is_file() or getattr(error, "sqlite_errorcode", 0) in _BUSY:
            raise
        return _open_to_read(path, wait)
    return connection


def _open_to_read(path: Path, wait: float) -> sqlite3.Connection:
    """Open a file that cannot be written; without its WAL files SQLite must take it to be immutable."""
    location = f"{path.absolute().as_uri()}?mode=ro"
    connection = _connect(location, wait)
    try:
        connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        connection = _connect(f"{location}&immutable=1", wait)
        connection.execute("PRAGMA user_version").fetchone()
    connection.execute("PRAGMA query_only=ON")
    return connection


def _connect(location: Path | str, wait: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        location, isolation_level=None, check_same_thread=False, timeout=wait, uri=isinstance(location, str)
    )
    connection.row_factory = sqlite3.Row
    return connection


def _reason(error: Exception) -> str:
    """SQLite's reason, with the next step for those that a user can act on."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    step = _NEXT_STEPS.get(code)
    return f"{error}; {step}" if step else str(error)


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL.

    SQLite does not wait for another process that makes the same switch on a new store, but it waits to begin
    a transaction.
    """
    for _ in range(100):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("COMMIT")
    raise sqlite3.OperationalError("another process is using it; try again")
