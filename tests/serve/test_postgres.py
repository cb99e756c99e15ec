"""Servers on one Postgres: they share what they know, and survive its absence."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

from heedful import StoredBank
from heedful.control import run_sync
from heedful.memory.postgres.database import PostgresDatabase
from heedful.memory.postgres.store import PostgresStore
from heedful.types import Mark
from tests.faulty import FaultyServer
from tests.postgres_server import PostgresServer
from tests.serve.serving import NOTE, Client, make_service, serving
from tests.serve.test_chat_route import unsure


@contextmanager
def server(url: str, upstream: str, folder: Path) -> Iterator[Client]:
    """A server on a Postgres; the connections of the store are its own."""
    with closing(PostgresDatabase(url, wait=1.0)) as database:
        store = PostgresStore(database)
        ticks = count()  # a clock that always says it is time to look at the store
        bank = StoredBank(store, "b", method="bm25", clock=lambda: float(next(ticks)))
        with serving(make_service(upstream, folder, store=store, bank=bank)) as client:
            yield client


def put_note(url: str) -> None:
    with closing(PostgresDatabase(url)) as database:
        run_sync(PostgresStore(database).put("b", [NOTE]))


def decision_of(client: Client, question: str = "When does the desk open?") -> tuple[str, str]:
    """The answer and the id of its decision."""
    asked = client.ask(question)
    assert asked.status == 200
    return asked.text, asked.headers["x-heedful-decision"]


def until_ready(client: Client) -> None:
    deadline = time.monotonic() + 60
    while client.send("GET", "/readyz").status != 200:
        assert time.monotonic() < deadline, client.send("GET", "/readyz").body


def without_memory(client: Client, with_memory: str) -> str:
    """The first decision without memory; a revision that was read before counts for half a second."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        text, decision = decision_of(client)
        if text != with_memory:
            return decision
    raise AssertionError("memory is still used")


def test_servers_share_entries_decisions_feedback_and_evidence(postgres_url: str, tmp_path: Path) -> None:
    put_note(postgres_url)
    with (
        FaultyServer(unsure) as upstream,
        server(postgres_url, upstream.url, tmp_path) as one,
        server(postgres_url, upstream.url, tmp_path) as two,
    ):
        _, id = decision_of(one)
        assert one.send("GET", f"/v1/decisions/{id}").status == 200
        assert two.send("GET", f"/v1/decisions/{id}").status == 200
        given = {"decision": id, "prefer": "first"}
        assert two.post("/v1/feedback", given).json["new"] is True
        assert one.post("/v1/feedback", given).json["new"] is False
        store = one.service.store
        [evidence] = run_sync(store.evidence("b"))
        assert (evidence.entry, evidence.utility) == ("desk", -1.0)
        assert run_sync(two.service.store.evidence("b")) == [evidence]


def test_an_entry_that_one_server_retires_is_not_used_by_the_other(postgres_url: str, tmp_path: Path) -> None:
    put_note(postgres_url)
    with (
        FaultyServer(unsure) as upstream,
        server(postgres_url, upstream.url, tmp_path) as one,
        server(postgres_url, upstream.url, tmp_path) as two,
    ):
        with_memory = decision_of(two)[0]
        listening = two.service.store
        assert isinstance(listening, PostgresStore)
        decision_of(two)  # the second recall begins to listen
        since = listening.changes("b")
        run_sync(one.service.store.mark("b", [Mark(entry="desk", state="retired")]))
        assert listening.feed.next_change("b", since, 30.0) != since
        without = decision_of(two)[0]
    assert with_memory != without


def test_a_server_answers_without_postgres_and_recovers_by_itself(
    postgres_server: PostgresServer, postgres_url: str, tmp_path: Path
) -> None:
    put_note(postgres_url)
    with FaultyServer(unsure) as upstream, server(postgres_url, upstream.url, tmp_path) as client:
        with_memory, before = decision_of(client)
        assert client.send("GET", f"/v1/decisions/{before}").status == 200
        postgres_server.stop()
        try:
            during = without_memory(client, with_memory)
            unready = client.send("GET", "/readyz")
            refused = client.post("/v1/feedback", {"decision": before, "right": True})
            assert client.send("GET", "/healthz").status == 200
        finally:
            postgres_server.start()
        assert (unready.status, "store" in unready.json) == (503, True)
        assert "cannot be reached" in unready.json["store"] or "connection" in unready.json["store"]
        assert refused.status == 503
        until_ready(client)
        assert client.send("GET", f"/v1/decisions/{before}").status == 200
        assert client.send("GET", f"/v1/decisions/{during}").status == 200, "it waited for the store"
        assert client.post("/v1/feedback", {"decision": during, "right": True}).json["new"] is True
        assert decision_of(client)[0] == with_memory
