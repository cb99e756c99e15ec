"""Connections, migrations and retries against a real Postgres."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from heedful import StoreError, UsageError
from heedful.memory.postgres.database import ATTEMPTS, PostgresDatabase
from heedful.memory.postgres.driver import Connection, psycopg
from heedful.memory.postgres.schema import SCHEMA_VERSION
from heedful.memory.postgres.store import PostgresStore, rows_of
from heedful.testing import ENTRIES
from heedful.types import Evidence
from tests.memory.postgres.wire import Cut, wire_to
from tests.postgres_server import PostgresServer

SEEN = Evidence(entry="e", version="v", task="t", utility=1.0, decision="")


@pytest.fixture
def database(postgres: PostgresStore) -> PostgresDatabase:
    return postgres.database


async def process_id(connection: Connection) -> int:
    return int((await rows_of(connection, "SELECT pg_backend_pid() AS id", ()))[0]["id"])


def test_tables_are_made_once_by_whichever_process_is_first(postgres_url: str) -> None:
    opened: list[PostgresDatabase] = []
    threads = [
        threading.Thread(target=lambda: opened.append(PostgresDatabase(postgres_url))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 4
    for database in opened:
        database.close()


def test_a_newer_schema_is_refused(postgres_server: PostgresServer, postgres_url: str) -> None:
    PostgresDatabase(postgres_url).close()
    postgres_server.run(postgres_url, f"UPDATE heedful_schema SET version = {SCHEMA_VERSION + 1}")
    with pytest.raises(StoreError, match="was written by a newer version of heedful; upgrade heedful"):
        PostgresDatabase(postgres_url)


def test_a_store_that_cannot_be_reached_is_one_error_without_its_password() -> None:
    url = "postgresql://ana:s3cret@127.0.0.1:1/heedful?connect_timeout=2"
    with pytest.raises(StoreError) as refused:
        PostgresDatabase(url)
    said = str(refused.value)
    assert said.startswith("the store postgresql://ana@127.0.0.1:1/heedful cannot be reached: ")
    assert said.endswith("start Postgres, or correct the URL")
    assert "s3cret" not in said
    assert "\n" not in said


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ana:s3cret@host/db?no_such_option=1",
        "postgresql://ana:s3cret%",
        "postgresql://ana@host:port/db?password=s3cret",
        "postgresql://ana:s3cret@[::1/db",
        "postgresql://ana:p@s3cret/db@[::1]:1/db?connect_timeout=2",
        "postgresql://ana:1?s3cret@[::1]:1/db",
    ],
)
def test_a_wrong_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises((UsageError, StoreError)) as refused:
        PostgresDatabase(url)
    assert "s3cret" not in str(refused.value)


def test_an_unknown_option_of_a_url_is_named() -> None:
    with pytest.raises(UsageError, match=r"query parameter; the URL has sslmode, colour$"):
        PostgresDatabase("postgresql://ana:s3cret@host/db?sslmode=require&colour=1")


def test_what_an_answer_waits_for_ends_although_postgres_does_not_answer(postgres_url: str) -> None:
    async def sleeps(connection: Connection) -> None:
        await connection.execute("SELECT pg_sleep(60)")

    async def story(impatient: PostgresDatabase) -> None:
        with pytest.raises(StoreError, match=r"did not answer within 0\.2 s"):
            await impatient.read_soon(sleeps)
        for _ in range(1000):  # the store is tried again in the background
            with suppress(StoreError):
                assert await impatient.read_soon(process_id)
                return
            await asyncio.sleep(0.01)
        pytest.fail("the store did not recover")

    with closing(PostgresDatabase(postgres_url, wait=0.2)) as impatient:
        asyncio.run(story(impatient))


def conflicts(times: int) -> Iterator[psycopg.Error]:
    for _ in range(times):
        yield psycopg.errors.SerializationFailure("could not serialize access")


@pytest.mark.parametrize(("times", "succeeds"), [(ATTEMPTS - 1, True), (ATTEMPTS, False)])
def test_a_conflict_is_tried_again_a_few_times(
    database: PostgresDatabase, times: int, succeeds: bool
) -> None:
    left = conflicts(times)

    async def work(connection: Connection) -> str:
        await connection.execute("INSERT INTO trials VALUES ('d', 0, 0.5, 1)")
        for conflict in left:
            raise conflict
        return "done"

    if succeeds:
        assert asyncio.run(database.write(work)) == "done"
    else:
        with pytest.raises(StoreError, match="could not serialize access"):
            asyncio.run(database.write(work))
    trials = asyncio.run(database.read(lambda c: rows_of(c, "SELECT 1 FROM trials", ())))
    assert len(trials) == int(succeeds)


def test_real_conflicts_between_serialisable_transactions_are_survived(postgres_url: str) -> None:
    url = f"{postgres_url}&options=-c%20default_transaction_isolation%3Dserializable"
    with closing(PostgresDatabase(url)) as database:

        async def count_up(connection: Connection) -> None:
            [row] = await rows_of(connection, "SELECT count(*) AS n FROM trials", ())
            await connection.execute("INSERT INTO trials VALUES (%s, 0, 0.5, 1)", (f"{row['n']}",))

        async def story() -> None:
            await asyncio.gather(*(database.write(count_up) for _ in range(4)))

        asyncio.run(story())
        rows = asyncio.run(database.read(lambda c: rows_of(c, "SELECT decision FROM trials", ())))
    assert sorted(row["decision"] for row in rows) == ["0", "1", "2", "3"]


def test_a_broken_connection_is_replaced_and_the_write_happens_once(
    database: PostgresDatabase, postgres_server: PostgresServer, postgres_url: str
) -> None:
    attempts = []

    async def work(connection: Connection) -> None:
        await connection.execute("INSERT INTO trials VALUES ('d', 0, 0.5, 1)")
        attempts.append(await process_id(connection))
        if len(attempts) == 1:
            postgres_server.run(postgres_url, f"SELECT pg_terminate_backend({attempts[0]})")
            await connection.execute("SELECT 1")

    asyncio.run(database.write(work))
    assert len(set(attempts)) == 2
    assert postgres_server.run(postgres_url, "SELECT count(*) FROM trials") == [(1,)]


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_connection_that_breaks_during_commit_neither_loses_nor_repeats_the_write(
    postgres_server: PostgresServer, postgres_url: str, cut: Cut
) -> None:
    name = postgres_url.partition("?")[0].rpartition("/")[2]
    with wire_to(postgres_server.folder) as wire:
        url = f"postgresql://postgres@127.0.0.1:{wire.port}/{name}?sslmode=disable&gssencmode=disable"
        store = PostgresStore(PostgresDatabase(url))

        async def use_several_connections() -> None:
            await asyncio.gather(*(store.evidence("b") for _ in range(8)))

        asyncio.run(use_several_connections())
        wire.cut = cut
        asyncio.run(store.observe("b", [SEEN]))
        assert wire.cuts == 1
        assert asyncio.run(store.evidence("b")) == [SEEN]
        asyncio.run(store.aclose())


def test_a_closed_database_leaves_no_thread(postgres_url: str) -> None:
    before = threading.active_count()
    database = PostgresDatabase(postgres_url)
    asyncio.run(PostgresStore(database).put("b", ENTRIES))
    database.close()
    assert threading.active_count() == before
