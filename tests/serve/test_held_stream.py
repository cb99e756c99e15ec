"""Streams: held until the decision, relayed, speculative; with the official client too."""

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from http.client import IncompleteRead
from pathlib import Path
from typing import Any

import openai
import pytest

from heedful import Controller, Database, arms
from heedful.decision_ids import DIGITS
from heedful.memory.journal import SqliteJournal
from heedful.rollout.assign import Rollout
from heedful.serve.served_policies import ServedPolicy
from heedful.types import Policy
from tests.faulty import Exchange, FaultyServer, Play, Request, answers, fails, streams
from tests.serve.serving import GATE, make_service, read, serving
from tests.serve.test_chat_route import KNOWN, unsure

MESSAGES: Any = [{"role": "user", "content": "When does the desk open?"}]


def chunks_of(body: bytes) -> list[Any]:
    lines = [line[6:] for line in body.decode().splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def text_of(chunks: list[Any]) -> str:
    return "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"])


def when(event: threading.Event, play: Play) -> Play:
    """Wait for an event before the play."""

    def waiting(exchange: Exchange) -> None:
        assert event.wait(20)
        play(exchange)

    return waiting


def test_a_held_stream_sends_the_chosen_answer_with_all_headers(tmp_path: Path) -> None:
    with FaultyServer(unsure) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        answer = client.ask(stream=True)
    chunks = chunks_of(answer.body)
    assert text_of(chunks) == KNOWN
    assert answer.headers["x-heedful-verdict"] == "accept"
    assert [c["choices"][0]["finish_reason"] for c in chunks] == [None, "stop"]
    assert chunks[1]["heedful"]["route"] == "consult"


def test_a_stream_that_waits_gets_comments_and_names_its_decision(tmp_path: Path) -> None:
    commented = threading.Event()
    with FaultyServer(lambda _: when(commented, answers("noon", -0.1))) as upstream:
        service = make_service(upstream.url, tmp_path, keep_alive=0.02)
        with serving(service) as client, client.opened("When?", stream=True) as response:
            first = response.readline()
            commented.set()
            rest = response.read()
            headers = dict(response.getheaders())
    assert first == b": heedful\n"
    assert text_of(chunks_of(rest)) == "noon"
    assert len(headers["x-heedful-decision"]) == DIGITS


def test_an_error_after_the_first_comment_is_an_event(tmp_path: Path) -> None:
    commented = threading.Event()
    with FaultyServer(lambda _: when(commented, fails(500, "their words"))) as upstream:
        service = make_service(upstream.url, tmp_path, keep_alive=0.02)
        with serving(service) as client, client.opened("When?", stream=True) as response:
            assert response.readline() == b": heedful\n"
            commented.set()
            rest = response.read().decode()
    assert json.loads(rest.split("data: ")[1])["error"]["message"] == "their words"
    assert "[DONE]" not in rest


def test_an_error_before_any_comment_is_the_upstreams_own(tmp_path: Path) -> None:
    with (
        FaultyServer(lambda _: fails(429, "slow down")) as upstream,
        serving(make_service(upstream.url, tmp_path)) as client,
    ):
        answer = client.ask(stream=True)
    assert (answer.status, answer.json["error"]["message"]) == (429, "slow down")


def test_a_policy_that_never_consults_relays_the_chunks_and_records_the_answer(tmp_path: Path) -> None:
    with (
        FaultyServer(lambda _: streams("at ", "noon")) as upstream,
        serving(make_service(upstream.url, tmp_path, arms.never())) as client,
    ):
        answer = client.ask(stream=True)
        decision = client.send("GET", f"/v1/decisions/{answer.headers['x-heedful-decision']}").json
    chunks = chunks_of(answer.body)
    assert [c["choices"][0]["delta"].get("content") for c in chunks] == ["", "at ", "noon", None]
    assert (decision["answer"], decision["usage"]["completion_tokens"]) == ("at noon", 2)
    assert "logprobs" not in upstream.requests[0].body


def note_after(event: threading.Event, first: Play) -> Callable[[Request], Play]:
    """The first pass at once, and the pass with the note after an event."""

    def script(request: Request) -> Play:
        return when(event, answers(KNOWN, -0.1)) if "7 am" in json.dumps(request.body) else first

    return script


def in_shadow(controller: Controller) -> list[ServedPolicy]:
    shadowed = replace(controller, rollout=Rollout(mode="shadow"))
    return [ServedPolicy(name="default", controller=shadowed, banks=("fixed",))]


def test_a_shadow_relays_the_first_answer_and_decides_afterwards(tmp_path: Path) -> None:
    """The second pass waits until the client has read its whole answer."""
    answered = threading.Event()

    with FaultyServer(note_after(answered, streams("at ", "noon"))) as upstream:
        policy = arms.gate("memory", threshold=float("inf"))
        with serving(make_service(upstream.url, tmp_path, policy, served=in_shadow)) as client:
            answer = client.ask(stream=True)
            answered.set()
        assert text_of(chunks_of(answer.body)) == "at noon"
        assert "logprobs" in upstream.requests[0].body
    database = Database(tmp_path / "heedful.db")
    decision = asyncio.run(SqliteJournal(database).find(answer.headers["x-heedful-decision"]))
    database.close()
    assert (decision.answer, decision.candidates[0].record.answer) == ("at noon", KNOWN)
    assert decision.verdict is not None
    assert decision.verdict.reason == "shadow"


def test_a_shadow_does_not_hold_up_a_whole_answer_and_feedback_waits_for_its_decision(tmp_path: Path) -> None:
    answered = threading.Event()

    with (
        FaultyServer(note_after(answered, answers("at noon", -0.9))) as upstream,
        serving(make_service(upstream.url, tmp_path, served=in_shadow)) as client,
    ):
        answer = client.ask()
        id = answer.headers["x-heedful-decision"]
        threading.Timer(0.1, answered.set).start()
        told = client.post("/v1/feedback", {"decision": id, "answer": KNOWN})
        decision = client.send("GET", f"/v1/decisions/{id}").json
    assert (answer.text, answer.json["usage"]["heedful"]["calls"]) == ("at noon", 1)
    assert answer.json["choices"][0]["logprobs"] is None
    assert (told.status, told.json["grades"]) == (200, [False, True])
    assert (decision["assignment"]["mode"], decision["calls"]) == ("shadow", 2)


def test_a_decision_that_a_shadow_does_not_complete_is_not_there_yet(tmp_path: Path) -> None:
    answered = threading.Event()

    with FaultyServer(note_after(answered, answers("at noon", -0.9))) as upstream:
        service = make_service(upstream.url, tmp_path, served=in_shadow)
        service.journal.store_seconds = 0.05
        with serving(service) as client:
            id = client.ask().headers["x-heedful-decision"]
            early = client.post("/v1/feedback", {"decision": id, "right": True})
            answered.set()
    assert (early.status, early.headers["retry-after"]) == (503, "1")
    assert "not complete yet" in early.json["error"]["message"]


def test_a_stream_that_breaks_off_upstream_is_not_completed(tmp_path: Path) -> None:
    chunk = {"id": "c", "choices": [{"index": 0, "delta": {"content": "at "}, "finish_reason": None}]}

    def play(exchange: Exchange) -> None:
        exchange.send(
            {"Content-Type": "text/event-stream", "Connection": "close"},
            f"data: {json.dumps(chunk)}\n\n".encode(),
        )
        exchange.end()

    with (
        FaultyServer(lambda _: play) as upstream,
        serving(make_service(upstream.url, tmp_path, served=in_shadow)) as client,
    ):
        with client.opened("When?", stream=True) as response, pytest.raises(IncompleteRead) as caught:
            response.read()
        counters = client.send("GET", "/metrics").body.decode()
    assert b"at " in caught.value.partial
    assert b"[DONE]" not in caught.value.partial
    assert 'status="502"' in counters


def test_log_probs_that_the_client_did_not_ask_for_are_not_relayed(tmp_path: Path) -> None:
    logprobs = {"content": [{"token": "noon", "logprob": -2.0, "top_logprobs": []}]}
    choice = {"index": 0, "delta": {"content": "noon"}, "logprobs": logprobs, "finish_reason": "stop"}
    data = f"data: {json.dumps({'id': 'c', 'choices': [choice]})}\n\ndata: [DONE]\n\n".encode()

    def play(exchange: Exchange) -> None:
        exchange.send({"Content-Type": "text/event-stream", "Connection": "close"}, data)
        exchange.end()

    with (
        FaultyServer(lambda _: play) as upstream,
        serving(make_service(upstream.url, tmp_path, served=in_shadow)) as client,
    ):
        plain, asked = client.ask(stream=True), client.ask(stream=True, logprobs=True)
    assert [c["choices"][0]["logprobs"] for c in chunks_of(plain.body)] == [None]
    assert [c["choices"][0]["logprobs"] for c in chunks_of(asked.body)] == [logprobs]


def test_an_upstream_that_does_not_stream_is_relayed_as_a_whole(tmp_path: Path) -> None:
    with (
        FaultyServer(lambda _: answers("noon")) as upstream,
        serving(make_service(upstream.url, tmp_path, arms.never())) as client,
    ):
        answer = client.ask(stream=True)
    assert text_of(chunks_of(answer.body)) == "noon"
    assert answer.headers["x-heedful-route"] == "keep"


def test_speculation_starts_both_passes_at_once(tmp_path: Path) -> None:
    """Each pass waits for the other's request: one after the other they would never end."""
    asked = {True: threading.Event(), False: threading.Event()}

    def script(request: Request) -> Play:
        with_note = "7 am" in json.dumps(request.body)
        asked[with_note].set()
        return when(asked[not with_note], unsure(request))

    with FaultyServer(script) as upstream:
        with serving(make_service(upstream.url, tmp_path, streaming="speculate")) as client:
            answer = client.ask(stream=True, stream_options={"include_usage": True})
        assert len(upstream.requests) == 2
    chunks = chunks_of(answer.body)
    assert text_of(chunks) == KNOWN
    assert chunks[-1]["usage"]["heedful"]["calls"] == 2


def test_a_speculative_pass_that_is_not_needed_is_cancelled(tmp_path: Path) -> None:
    def script(request: Request) -> Play:
        if "7 am" in json.dumps(request.body):
            return lambda exchange: exchange.hold()
        return answers("noon", -0.1)

    with (
        FaultyServer(script) as upstream,
        serving(make_service(upstream.url, tmp_path, streaming="speculate")) as client,
    ):
        answer = client.ask(stream=True)
    assert text_of(chunks_of(answer.body)) == "noon"
    assert answer.headers["x-heedful-route"] == "keep"


@pytest.mark.parametrize("policy", [GATE, arms.never()], ids=["held", "relayed"])
def test_the_official_client_reads_streams(policy: Policy, tmp_path: Path) -> None:
    def script(request: Request) -> Play:
        return streams("at ", "7 am") if request.body.get("stream") else unsure(request)

    with FaultyServer(script) as upstream, serving(make_service(upstream.url, tmp_path, policy)) as client:
        with openai.OpenAI(base_url=client.url, api_key="none") as official:
            stream = official.chat.completions.create(
                model="m", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
            )
            chunks = list(stream)
        asynchronous = asyncio.run(streamed_text(client.url))
    said = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert (said, asynchronous) == (KNOWN, KNOWN)
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.prompt_tokens >= 11


async def streamed_text(url: str) -> str:
    async with openai.AsyncOpenAI(base_url=url, api_key="none") as official:
        stream = await official.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        return "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])


def test_the_official_client_reads_whole_answers(tmp_path: Path) -> None:
    with (
        FaultyServer(unsure) as upstream,
        serving(make_service(upstream.url, tmp_path)) as client,
        openai.OpenAI(base_url=client.url, api_key="none") as official,
    ):
        raw = official.chat.completions.with_raw_response.create(model="m", messages=MESSAGES)
    assert raw.parse().choices[0].message.content == KNOWN
    assert raw.headers["x-heedful-verdict"] == "accept"


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_cancels_the_work_upstream(stream: bool, tmp_path: Path) -> None:
    asked, cancelled = threading.Event(), threading.Event()

    def until_closed(exchange: Exchange) -> None:
        asked.set()
        assert exchange.handler.connection.recv(1) == b""
        cancelled.set()
        exchange.end()

    with (
        FaultyServer(lambda _: until_closed) as upstream,
        serving(make_service(upstream.url, tmp_path, keep_alive=0.02)) as client,
    ):
        connection = client.asking("When?", stream=stream)
        assert asked.wait(20)
        connection.close()
        assert cancelled.wait(20)


def test_requests_in_progress_finish_when_the_server_stops(tmp_path: Path) -> None:
    asked, stopping = threading.Event(), threading.Event()

    def script(request: Request) -> Play:
        asked.set()
        return when(stopping, answers("noon", -0.1))

    with FaultyServer(script) as upstream:
        with serving(make_service(upstream.url, tmp_path, batch=60.0)) as client:
            connection = client.asking("When?")
            assert asked.wait(20)
            client.stop()
            stopping.set()
            answer = read(connection.getresponse())
            connection.close()
        assert answer.text == "noon"
    database = Database(tmp_path / "heedful.db")
    assert asyncio.run(SqliteJournal(database).find("last")).answer == "noon"
    database.close()
