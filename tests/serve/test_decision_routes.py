"""Decisions and feedback over HTTP."""

import asyncio
from pathlib import Path

import pytest

from heedful import Database, SqliteStore
from heedful.decision_ids import DIGITS
from heedful.memory.feedback import SqliteFeedback
from heedful.memory.journal import SqliteJournal
from heedful.serve.batched_journal import BATCH_SECONDS
from heedful.serve.callers import Caller, CallerKey, Callers, Rights, key_hash
from tests.faulty import FaultyServer, answers
from tests.serve.serving import Client, make_service, serving
from tests.serve.test_chat_route import GUESS, KNOWN, unsure

KEYS = Callers(
    [
        CallerKey(hash=key_hash("a-key"), caller=Caller(name="ann", rights=Rights())),
        CallerKey(hash=key_hash("b-key"), caller=Caller(name="bob", rights=Rights())),
        CallerKey(hash=key_hash("c-key"), caller=Caller(name="chief", rights=Rights(admin=True))),
    ]
)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def decided(client: Client, **headers: str) -> str:
    return client.ask(headers=headers).headers["x-heedful-decision"]


def test_a_decision_is_readable_at_once_although_it_is_written_later(tmp_path: Path) -> None:
    with (
        FaultyServer(unsure) as upstream,
        serving(make_service(upstream.url, tmp_path, batch=60.0)) as client,
    ):
        shown = client.send("GET", f"/v1/decisions/{decided(client)}").json
        waiting = client.service.journal.waiting
    assert (shown["answer"], shown["first"]["answer"], shown["feedback"]) == (KNOWN, GUESS, [])
    assert waiting == 0


@pytest.mark.parametrize(
    ("given", "kind", "value"),
    [
        ({"right": True}, "grade", "right"),
        ({"score": 0.1}, "grade", "wrong"),
        ({"answer": KNOWN}, "answer", KNOWN),
        ({"prefer": "memory"}, "preference", "memory"),
    ],
)
def test_feedback_counts_once_however_often_it_is_sent(
    given: dict[str, object], kind: str, value: str, tmp_path: Path
) -> None:
    with (
        FaultyServer(unsure) as upstream,
        serving(make_service(upstream.url, tmp_path, batch=60.0)) as client,
    ):
        id = decided(client)
        first, again = (client.post("/v1/feedback", {"decision": id, **given}).json for _ in range(2))
        shown = client.send("GET", f"/v1/decisions/{id}").json["feedback"]
    assert (first["kind"], first["value"], first["new"], again["new"]) == (kind, value, True, False)
    assert [(one["kind"], one["value"]) for one in shown] == [(kind, value)]


def test_an_answer_is_evidence_about_the_recalled_entry(tmp_path: Path) -> None:
    with FaultyServer(unsure) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        told = client.post("/v1/feedback", {"decision": decided(client), "answer": KNOWN}).json
    assert [(e["bank"], e["entry"], e["utility"]) for e in told["evidence"]] == [("fixed", "desk", 1.0)]


@pytest.mark.parametrize(
    "given", [{}, {"right": True, "score": 1}, {"score": 0.5}, {"prefer": "both"}, {"right": "yes"}, {"x": 1}]
)
def test_unclear_feedback_is_refused(given: dict[str, object], tmp_path: Path) -> None:
    with FaultyServer(unsure) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        refused = client.post("/v1/feedback", {"decision": decided(client), **given})
    assert refused.status == 400
    assert refused.json["error"]["message"]


@pytest.mark.parametrize("id", ["last", "0" * 12, "0" * DIGITS, "%", "..", "a"])
def test_an_unknown_decision_is_not_found(id: str, tmp_path: Path) -> None:
    with FaultyServer(unsure) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        decided(client)
        assert client.send("GET", f"/v1/decisions/{id}").status == 404
        assert client.post("/v1/feedback", {"decision": id, "right": True}).status == 404


def test_feedback_may_go_to_another_server_at_once(tmp_path: Path) -> None:
    with (
        FaultyServer(unsure) as upstream,
        serving(make_service(upstream.url, tmp_path, batch=BATCH_SECONDS)) as one,
        serving(make_service(upstream.url, tmp_path)) as other,
    ):
        given = other.post("/v1/feedback", {"decision": decided(one), "right": True})
    assert (given.status, given.json["new"]) == (200, True), given.body


def test_callers_see_their_own_decisions_only_and_an_admin_sees_all(tmp_path: Path) -> None:
    with (
        FaultyServer(unsure) as upstream,
        serving(make_service(upstream.url, tmp_path, callers=KEYS)) as client,
    ):
        id = decided(client, **bearer("a-key"))
        path, given = f"/v1/decisions/{id}", {"decision": id, "right": True}
        seen = [client.send("GET", path, None, **bearer(f"{who}-key")).status for who in "abc"]
        told = [client.post("/v1/feedback", given, **bearer(f"{who}-key")).status for who in "abc"]
    assert (seen, told) == ([200, 404, 200], [200, 404, 200])


def test_acknowledged_feedback_is_on_disk(tmp_path: Path) -> None:
    """Another connection sees it while the server still runs, as after kill -9."""
    with (
        FaultyServer(lambda _: answers("noon", -0.1)) as upstream,
        serving(make_service(upstream.url, tmp_path, batch=60.0)) as client,
    ):
        id = decided(client)
        client.post("/v1/feedback", {"decision": id, "right": False})
        other = SqliteStore(Database(tmp_path / "heedful.db"))
        found = asyncio.run(SqliteJournal(other.database).find(id))
        given = asyncio.run(SqliteFeedback(other.database).of([found]))[id]
        other.database.close()
    assert (found.answer, [one.value for one in given]) == ("noon", ["wrong"])


@pytest.mark.parametrize("metric", ["python:os:symlink", "judge", "magic"])
def test_no_request_chooses_code_to_compare_an_answer_with(metric: str, tmp_path: Path) -> None:
    made = tmp_path / "made"
    with FaultyServer(unsure) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        given = {"decision": decided(client), "answer": str(made), "metric": metric}
        refused = client.post("/v1/feedback", given)
    assert (refused.status, made.is_symlink()) == (400, False)
    assert "python:" not in refused.json["error"]["message"].partition(";")[2]


def test_feedback_is_not_acknowledged_after_the_store_was_deleted(tmp_path: Path) -> None:
    with FaultyServer(unsure) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        id = decided(client)
        assert client.send("GET", f"/v1/decisions/{id}").status == 200
        for file in tmp_path.glob("heedful.db*"):
            file.unlink()
        told = client.post("/v1/feedback", {"decision": id, "right": True})
        answer = client.ask()
    assert (told.status, "is gone" in told.json["error"]["message"]) == (503, True)
    assert (answer.status, answer.text) == (200, KNOWN)
