"""The SQLite file that holds banks, evidence and decisions."""

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar, cast
from weakref import finalize

from heedful.errors import StoreError
from heedful.memory.moved_tables import unfinished_move

SCHEMA_VERSION = 5
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
AUDIT = """
ALTER TABLE states ADD COLUMN actor TEXT NOT NULL DEFAULT '';
ALTER TABLE states ADD COLUMN grounds TEXT NOT NULL DEFAULT 'null';
"""
"""Since version 5: who changed a state, and on which evidence."""

_USES = """
SELECT {row}.id, json_extract(s.value, '$.bank'), ''
FROM {table} json_each(json_extract({row}.record, '$.sources')) s
WHERE json_extract(s.value, '$.bank') IS NOT NULL
UNION ALL
SELECT {row}.id, coalesce(json_extract(s.value, '$.bank'), ''), json_extract(r.value, '$.entry')
FROM {table} json_each(json_extract({row}.record, '$.first.recalls')) r,
    json_each(json_extract({row}.record, '$.sources')) s
WHERE s.key = json_extract({row}.record, '$.first.source')
UNION ALL
SELECT {row}.id, coalesce(json_extract(s.value, '$.bank'), ''), json_extract(r.value, '$.entry')
FROM {table} json_each(json_extract({row}.record, '$.candidates')) c,
    json_each(c.value, '$.record.recalls') r, json_each(json_extract({row}.record, '$.sources')) s
WHERE s.key = json_extract(c.value, '$.record.source')
"""
FACTS = f"""
ALTER TABLE decisions ADD COLUMN route TEXT AS (json_extract(record, '$.route.choice'));
ALTER TABLE decisions ADD COLUMN verdict TEXT AS (json_extract(record, '$.verdict.choice'));
ALTER TABLE decisions ADD COLUMN chosen INTEGER AS (json_extract(record, '$.chosen'));
ALTER TABLE decisions ADD COLUMN confidence REAL AS (json_extract(record, '$.confidence'));
ALTER TABLE decisions ADD COLUMN net_value REAL
    AS (json_extract(record, '$.value.steps[0].gain') - json_extract(record, '$.value.steps[0].cost'));
ALTER TABLE decisions ADD COLUMN seconds REAL AS (json_extract(record, '$.seconds'));
ALTER TABLE decisions ADD COLUMN calls INTEGER AS (json_extract(record, '$.calls'));
ALTER TABLE decisions ADD COLUMN tokens INTEGER
    AS (json_extract(record, '$.usage.prompt_tokens') + json_extract(record, '$.usage.completion_tokens'));
ALTER TABLE decisions ADD COLUMN faults INTEGER AS (json_array_length(record, '$.faults'));
ALTER TABLE decisions ADD COLUMN policy TEXT AS (json_extract(record, '$.policy_id'));
ALTER TABLE decisions ADD COLUMN memory_first INTEGER AS (json_array_length(record, '$.first.recalls') > 0);
ALTER TABLE decisions ADD COLUMN memory_chosen INTEGER AS (
    json_array_length(record, '$.candidates[' || json_extract(record, '$.chosen') || '].record.recalls') > 0
);
ALTER TABLE decisions ADD COLUMN unchanged INTEGER
    AS (json_extract(record, '$.answer') = json_extract(record, '$.first.answer'));
ALTER TABLE decisions ADD COLUMN coin INTEGER AS (
    json_extract(record, '$.trial.accepted') IS NOT NULL
    OR (json_type(record, '$.trial') = 'object' AND json_array_length(record, '$.first.recalls') > 0)
);
CREATE INDEX decisions_by_facts ON decisions (
    at, id, route, verdict, chosen, confidence, net_value, seconds, calls, tokens, faults, policy,
    memory_first, memory_chosen, unchanged, coin
);
DROP INDEX decisions_by_time;
CREATE TABLE uses (
    decision TEXT NOT NULL, bank TEXT NOT NULL, entry TEXT NOT NULL, PRIMARY KEY (decision, bank, entry)
) WITHOUT ROWID;
CREATE INDEX uses_by_entry ON uses (bank, entry);
INSERT OR IGNORE INTO uses {_USES.format(row="d", table="decisions d,")};
CREATE TRIGGER uses_of_decision AFTER INSERT ON decisions BEGIN
    INSERT OR IGNORE INTO uses {_USES.format(row="new", table="")};
END;
CREATE TRIGGER uses_of_forgotten_decision AFTER DELETE ON decisions BEGIN
    DELETE FROM uses WHERE decision = old.id;
END;
"""
"""Since version 4: facts of decisions in an index, and the banks and entries that each one used.

A use without an entry is a bank that the decision might have used; a source of another package may name none.
"""


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

    def __init__(
        self, path: Path | str | None = None, *, wait: float = WAIT_SECONDS, moving: bool = False
    ) -> None:
        """`wait` limits how long a write waits for another process, in seconds; `moving`: open the target
        of an unfinished move."""
        self.path = Path(path) if path is not None else default_path()
        self._lock = threading.RLock()
        try:
            self._connection = _open(self.path, wait)
            finalize(self, self._connection.close)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"cannot open the store {self.path}: {_reason(error)}") from error
        self._prepare()
        if not moving and (source := self._unfinished_move()):
            self.close()
            raise StoreError(unfinished_move(str(self.path), source))

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
            for before, script in enumerate((SCHEMA, REVISIONS, LIVE_USE, FACTS, AUDIT)):
                if version <= before:
                    for statement in _statements(script):
                        connection.execute(statement)
            connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")

    def _unfinished_move(self) -> str | None:
        """The source of a move into this store that did not end."""
        with self.reading() as connection:
            if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'moves'").fetchone() is None:
                return None
            row = connection.execute("SELECT source FROM moves WHERE NOT finished").fetchone()
        return None if row is None else row["source"]

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a transaction, outside the event loop; its writes are on disk when this returns."""

        def writing() -> T:
            with self.writing() as connection:
                return _detached(work(connection))

        return await in_daemon_thread(writing)

    async def insert(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Run a statement for every row, in one transaction."""

        def insert(connection: sqlite3.Connection) -> None:
            connection.executemany(statement, rows)

        await self.write(insert)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` outside the event loop; it may only read."""

        def reading() -> T:
            with self.reading() as connection:
                return _detached(work(connection))

        return await in_daemon_thread(reading)

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
        """Close the file after the transaction in progress."""
        with self._lock:
            self._connection.close()


def _detached(result: T) -> T:
    """Refuse a cursor, which another thread would reset while the connection runs the next statement.

    SQLite reports such a statement as misused, and its write is lost.
    """
    if isinstance(result, sqlite3.Cursor):
        raise TypeError("a cursor must not leave its transaction: return its rows, or nothing")
    return result


def _statements(script: str) -> Iterator[str]:
    """The statements of a script; those inside a trigger belong to the trigger."""
    statement = ""
    for part in script.split(";"):
        statement += f"{part};"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


async def in_daemon_thread(work: Callable[[], T]) -> T:
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
