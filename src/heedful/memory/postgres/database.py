"""Connections to Postgres that any thread and any event loop may use."""

import asyncio
import logging
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias, TypeVar
from weakref import finalize

from heedful.errors import StoreError, UsageError
from heedful.memory.moved_tables import unfinished_move
from heedful.memory.postgres.address import option_names, shown_url, without_secrets
from heedful.memory.postgres.driver import Connection, Pool, psycopg, psycopg_pool
from heedful.memory.postgres.schema import prepare

T = TypeVar("T")
Work: TypeAlias = Callable[[Connection], Awaitable[T]]
WAIT_SECONDS = 3.0
"""How long a call waits for a free connection, and an answer for what it reads."""
PROBE_SECONDS = 0.5
"""Between two attempts to reach a store that failed; until one succeeds, calls fail at once."""
ATTEMPTS = 5
PAUSE_SECONDS = 0.05
"""Before the second attempt; it doubles with each."""
MOST_CONNECTIONS = 16
DEFAULTS = {
    "connect_timeout": 5,
    "application_name": "heedful",
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}
"""Connection options that a URL may set otherwise."""
SETTINGS = """
SELECT set_config('hnsw.iterative_scan', 'relaxed_order', false),
       set_config('hnsw.ef_search', '160', false),
       set_config('lock_timeout', '30s', false),
       CASE WHEN current_setting('synchronous_commit') = 'off'
            THEN set_config('synchronous_commit', 'on', false) END
"""
"""Of every connection: a filter does not end a search early, and a committed transaction is on disk."""


_STATUS = "SELECT pg_xact_status(%s::xid8) AS status"


class PostgresDatabase:
    """A pool of connections in an event loop of its own.

    A committed transaction is durable. A transaction that conflicts with another one, or whose connection
    breaks, is tried again a few times. If the connection breaks during COMMIT, Postgres is asked whether the
    transaction took place, so nothing is written twice.
    """

    def __init__(
        self,
        url: str,
        *,
        wait: float = WAIT_SECONDS,
        connections: int = MOST_CONNECTIONS,
        moving: bool = False,
    ) -> None:
        """`wait` limits how long a call waits for a free connection, in seconds; `moving`: open the target
        of an unfinished move."""
        self.url = url
        self.shown = shown_url(url)
        self._wait = wait
        self._problem: StoreError | None = None
        """Set while the store cannot be reached."""
        self._probing: asyncio.Task[None] | None = None
        if url.partition("?")[0].count("@") > 1:  # a driver would take a part of the password for a host
            raise UsageError(
                f"the store {self.shown} is not a usable URL: write @ in a user or password as %40, "
                "/ as %2F and ? as %3F"
            )
        try:
            given: dict[str, Any] = {**DEFAULTS, **psycopg.conninfo.conninfo_to_dict(url)}
            self.options = psycopg.conninfo.make_conninfo("", **given)
        except psycopg.ProgrammingError as error:
            reason = re.sub(r':? *"[^"]*"', "", str(error)).strip()  # a part of the URL may be the password
            if "query parameter" in reason:
                reason += f"; the URL has {option_names(url)}"
            raise UsageError(f"the store {self.shown} is not a usable URL: {reason}") from error
        self._loop, self._thread = _started_loop()
        try:
            self._pool = self.run(self._opened(connections, moving))
        except BaseException:
            _stop(self._loop, self._thread)
            raise
        self._closing = finalize(self, _close, self._loop, self._thread, self._pool)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the event loop of the connections, for code without an event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def read(self, work: Work[T]) -> T:
        """Run `work` on a connection; it may only read."""
        return await self._elsewhere(self._attempts(work, self._once))

    async def read_soon(self, work: Work[T]) -> T:
        """The same for what an answer waits for: it fails if Postgres takes longer than for a connection."""
        return await self._elsewhere(self._soon(self._attempts(work, self._once)))

    async def write(self, work: Work[T]) -> T:
        """Run `work` in a transaction; its writes are durable when this returns."""
        return await self._elsewhere(self._attempts(work, self._committed))

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Start work that runs until the database is closed."""
        asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        self._closing()

    async def _elsewhere(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _soon(self, reading: Coroutine[Any, Any, T]) -> T:
        """Leave a read that takes too long: to cancel it would wait for Postgres as well."""
        task = asyncio.get_running_loop().create_task(reading)
        await asyncio.wait({task}, timeout=self._wait)
        if task.done():
            return task.result()
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        raise self._down(StoreError(f"the store {self.shown} did not answer within {self._wait:g} s"))

    async def _opened(self, connections: int, moving: bool) -> Pool:
        """The pool, after the tables are up to date; the first connection finds out what is wrong."""
        connection = await connect(self.options, self.url)
        try:
            await prepare(connection, self.shown)
            if not moving and (source := await _unfinished_source(connection)):
                raise StoreError(unfinished_move(self.shown, source))
        except psycopg.Error as error:
            raise self._failure(error) from error
        finally:
            await connection.close()
        return await _opened_pool(self.options, connections)

    async def _attempts(self, work: Work[T], attempt: Callable[[Work[T]], Awaitable[T]]) -> T:
        """Try again after conflicts and broken connections, a few times."""
        for place in range(ATTEMPTS):
            try:
                return await attempt(work)
            except psycopg.DataError as error:
                raise UsageError(f"Postgres cannot store this value: {_reason(error)}") from error
            except psycopg.Error as error:
                if place == ATTEMPTS - 1 or not _passes(error):
                    raise self._failure(error) from error
            await self._pool.check()  # Postgres may have ended the other connections too
            await asyncio.sleep(PAUSE_SECONDS * 2**place)
        raise AssertionError("the last attempt returns or raises")

    async def _once(self, work: Work[T]) -> T:
        async with self._connection() as connection:
            return await work(connection)

    async def _committed(self, work: Work[T]) -> T:
        transaction: str | None = None
        try:
            async with self._connection() as connection, connection.transaction():
                result = await work(connection)
                transaction = await _transaction_id(connection)
        except psycopg.OperationalError:
            if transaction is None or not await self._took_place(transaction):
                raise
        return result

    async def _took_place(self, transaction: str) -> bool:
        """Whether a transaction was committed, whose connection broke during COMMIT."""
        for place in range(ATTEMPTS):
            with suppress(psycopg.OperationalError):  # this connection is broken too
                async with self._connection() as connection:
                    rows = await connection.execute(_STATUS, (transaction,))
                    row = await rows.fetchone()
                if row is not None and row["status"] in ("committed", "aborted"):
                    return bool(row["status"] == "committed")
            await self._pool.check()
            await asyncio.sleep(PAUSE_SECONDS * 2**place)
        raise StoreError(f"the store {self.shown} does not say whether a write took place; read it again")

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        if self._problem is not None:
            raise StoreError(str(self._problem))
        try:
            connection = await self._pool.getconn(self._wait)
        except psycopg_pool.PoolTimeout as error:
            busy = StoreError(f"the store {self.shown} has no free connection within {self._wait:g} s")
            raise self._down(busy) from error
        try:
            yield connection
        finally:
            await self._pool.putconn(connection)

    def _down(self, problem: StoreError) -> StoreError:
        """Let calls fail at once from now on, until the store can be reached."""
        if self._problem is None:
            self._problem = problem
            self._probing = asyncio.get_running_loop().create_task(self._probe())
        return problem

    async def _probe(self) -> None:
        """Try to reach the store until it answers."""
        while True:
            try:
                connection = await connect(self.options, self.url)
            except StoreError as error:
                self._problem = error
                await asyncio.sleep(PROBE_SECONDS)
            else:
                await connection.close()
                self._problem = None
                return

    def _failure(self, error: psycopg.Error) -> StoreError:
        reason = without_secrets(_reason(error), self.url)
        return StoreError(f"the store {self.shown} failed: {reason}{_next_step(error)}")


async def connect(options: str, url: str) -> Connection:
    """A connection outside the pool."""
    try:
        return await psycopg.AsyncConnection.connect(
            options, autocommit=True, row_factory=psycopg.rows.dict_row
        )
    except psycopg.Error as error:
        reason = without_secrets(_reason(error), url)
        raise StoreError(
            f"the store {shown_url(url)} cannot be reached: {reason}; start Postgres, or correct the URL"
        ) from error


async def _opened_pool(options: str, connections: int) -> Pool:
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # heedful reports what does not work
    pool: Pool = psycopg_pool.AsyncConnectionPool(
        options,
        kwargs={"autocommit": True, "row_factory": psycopg.rows.dict_row},
        min_size=1,
        max_size=connections,
        open=False,
        configure=_configure,
        reconnect_timeout=1.0,  # the next call tries again
    )
    await pool.open()
    return pool


async def _configure(connection: Connection) -> None:
    await connection.execute(SETTINGS)


async def _transaction_id(connection: Connection) -> str | None:
    """The id of the open transaction; None if it wrote nothing."""
    rows = await connection.execute("SELECT pg_current_xact_id_if_assigned()::text AS id")
    row = await rows.fetchone()
    return None if row is None else row["id"]


async def _unfinished_source(connection: Connection) -> str | None:
    """The source of a move into this store that did not end; None too if the role may not know."""
    try:
        rows = await connection.execute("SELECT source FROM moves WHERE NOT finished")
    except psycopg.errors.InsufficientPrivilege:
        return None
    row = await rows.fetchone()
    return None if row is None else str(row["source"])


def _next_step(error: psycopg.Error) -> str:
    """What a user can do about a failure, if it is known."""
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return "; its role lacks a privilege: use the owner's URL, or grant it (docs/postgres.md, Roles)"
    if isinstance(error, psycopg.errors.UndefinedObject) and "vector" in str(error):
        return "; pgvector is in a schema that the search path lacks: add it, as in search_path=team,public"
    if isinstance(error, psycopg.errors.InvalidSchemaName):
        return "; create the schema first"
    return ""


def _passes(error: psycopg.Error) -> bool:
    """Whether the same transaction may succeed a moment later."""
    if isinstance(error, psycopg.errors.LockNotAvailable | psycopg.errors.QueryCanceled):
        return False
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)


def _reason(error: psycopg.Error) -> str:
    return " ".join((error.diag.message_primary or str(error)).split())


def _started_loop() -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
    """An event loop in a thread that the process does not wait for; psycopg needs a selector."""
    loop = asyncio.SelectorEventLoop()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()

    thread = threading.Thread(target=run, name="heedful-postgres", daemon=True)
    thread.start()
    return loop, thread


def _close(loop: asyncio.AbstractEventLoop, thread: threading.Thread, pool: Pool) -> None:
    """Close the connections and end the thread."""
    if thread is threading.current_thread():  # collected as garbage there: it cannot wait for itself
        loop.create_task(_end(pool)).add_done_callback(lambda _: loop.stop())
        return
    with suppress(TimeoutError):
        asyncio.run_coroutine_threadsafe(_end(pool), loop).result(timeout=5)
    _stop(loop, thread)


async def _end(pool: Pool) -> None:
    await pool.close(timeout=2)
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(loop.stop)
    thread.join(timeout=5)
    if not thread.is_alive():
        loop.close()
