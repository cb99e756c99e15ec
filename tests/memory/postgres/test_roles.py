"""The roles of docs/postgres.md: the server's role works, and cannot destroy anything."""

import asyncio
import re
from contextlib import closing
from pathlib import Path

import pytest

from heedful import StoreError, UsageError
from heedful.feedback import grade_feedback
from heedful.memory.postgres.database import PostgresDatabase
from heedful.memory.postgres.driver import psycopg
from heedful.memory.postgres.store import PostgresStore
from heedful.memory.purge import PurgeOrder
from heedful.testing import DECISION, check_store
from heedful.types import Trial
from tests.memory.postgres.test_recall import TopicEmbedder, large, some_entries
from tests.postgres_server import PostgresServer

PAGE = Path(__file__).parents[3] / "docs" / "postgres.md"
FORBIDDEN = (
    *("DROP TABLE entries", "TRUNCATE decisions", "DELETE FROM decisions", "DELETE FROM feedback"),
    *("UPDATE entries SET text = ''", "ALTER TABLE states ADD COLUMN x int", "DROP INDEX heads_by_vector"),
    *("UPDATE decisions SET record = ''", "CREATE TABLE own (x int)", "DELETE FROM states"),
    *("UPDATE heedful_schema SET version = 0", "DROP DATABASE heedful", "INSERT INTO tombstones VALUES (1)"),
)


def documented(first: str) -> list[str]:
    """The statements of the SQL on the page that begins with these words."""
    blocks = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (block,) = (block for block in blocks if block.startswith(first))
    statements = re.sub(r"--.*", "", block).split(";")
    return [text for statement in statements if (text := statement.strip())]


@pytest.fixture(scope="module")
def server_url(postgres_server: PostgresServer) -> str:
    """The store as the server's role sees it, made by the documented statements."""
    for statement in documented("CREATE ROLE"):
        postgres_server.run(postgres_server.url(), statement)
    for statement in documented("CREATE EXTENSION"):
        postgres_server.run(postgres_server.url("heedful"), statement)
    with pytest.raises(StoreError, match="run heedful doctor --store URL once as the owner"):
        PostgresDatabase(postgres_server.url("heedful", "heedful_server"))
    PostgresDatabase(postgres_server.url("heedful", "heedful_owner")).close()
    for statement in documented("GRANT SELECT"):
        postgres_server.run(postgres_server.url("heedful", "heedful_owner"), statement)
    return postgres_server.url("heedful", "heedful_server")


def test_the_servers_role_can_do_what_a_server_does(server_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        await check_store(store)
        await store.journal.announce(DECISION.id, Trial(share=0.5, allowed=True))
        await store.journal.record(DECISION)
        for right in (True, False):
            assert (await store.feedback.give(grade_feedback(DECISION, right=right))).new
        assert [d.id for d in await store.journal.recent(9)] == [DECISION.id]
        await store.put("large", some_entries(20))
        assert await large(store, TopicEmbedder(), "large").recall("topic1 text 1", limit=1)
        store.vector_cache().vectors(["a text"], TopicEmbedder())
        await store.ready()
        with pytest.raises((StoreError, UsageError), match="permission denied"):
            await store.purge(PurgeOrder(decision=DECISION.id))

    with closing(PostgresDatabase(server_url)) as database:
        asyncio.run(story(PostgresStore(database)))


def test_the_owner_can_build_the_index_after_an_import(
    postgres_server: PostgresServer, server_url: str
) -> None:
    owner = postgres_server.url("heedful", "heedful_owner")
    index = "SELECT indexdef FROM pg_indexes WHERE indexname = 'heads_by_vector'"
    before = postgres_server.run(owner, index)
    drop, *build = documented("DROP INDEX heads_by_vector")
    postgres_server.run(owner, drop)
    assert postgres_server.run(owner, index) == []
    for statement in build:
        postgres_server.run(owner, statement)
    assert postgres_server.run(owner, index) == before != []


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_the_servers_role_cannot_destroy_anything(
    postgres_server: PostgresServer, server_url: str, statement: str
) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        postgres_server.run(server_url, statement)
