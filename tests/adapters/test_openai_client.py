"""`wrap_openai` with the real openai package, against an endpoint on loopback."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from heedful import (
    ChatModel,
    Controller,
    MemorySource,
    Policy,
    ScriptedModel,
    SqliteStore,
    UsageError,
    arms,
    new_entry,
)
from heedful.adapters.openai_client import wrap_openai
from heedful.memory.journal import SqliteJournal
from heedful.rollout.assign import Rollout
from tests.faulty import Exchange, FaultyServer, Play, Request, answers, completion, fails, sends, words
from tests.making import FixedBank

NOTE = "It is blue."
ASKED = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": "What is it?", "name": "ana"},
]


def sky(request: Request) -> Play:
    """Knows the colour only from a note, and streams if it is asked to."""
    said, logprob = ("blue", -0.1) if NOTE in request.question else ("no idea", -0.9)
    return streams(said, logprob) if request.body.get("stream") else answers(said, logprob)


def streams(text: str, logprob: float) -> Play:
    """The words of an answer as server-sent events."""
    whole = completion(text, words(text, logprob))
    tokens = whole["choices"][0]["logprobs"]["content"]

    def event(delta: dict[str, Any], **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": None, **more}
        head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        return b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\n\n"

    pieces = [event({"role": "assistant", "content": ""})]
    pieces += [event({"content": token["token"]}, logprobs={"content": [token]}) for token in tokens]
    body = b"".join([*pieces, event({}, finish_reason="stop"), b"data: [DONE]\n\n"])

    def play(exchange: Exchange) -> None:
        exchange.send({"Content-Type": "text/event-stream", "Content-Length": str(len(body))}, body)

    return play


def controller(
    policy: Policy = arms.choose("notes", threshold=-0.5, margin=0.0), **settings: Any
) -> Controller:
    source = MemorySource(bank=FixedBank([new_entry(NOTE, kind="rule", id="blue")]))
    return Controller(model=ScriptedModel(script={}), policy=policy, sources={"notes": source}, **settings)


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer(sky) as running:
        yield running


@pytest.fixture
def client(server: FaultyServer) -> Iterator[Any]:
    with OpenAI(base_url=server.url, api_key="k", max_retries=0) as opened:
        yield opened


Ask = Callable[..., Any]


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest, server: FaultyServer, client: Any) -> Ask:
    """Calls a wrapped client, and collects what it streams."""

    def call(control: Controller, logprobs: bool = True, **fields: Any) -> Any:
        fields = {"model": "m", "messages": ASKED, **fields}
        if request.param == "sync":
            wrapped = wrap_openai(client, controller=control, logprobs=logprobs)
            reply = wrapped.chat.completions.create(**fields)
            return (list(reply), reply.heedful) if fields.get("stream") else reply
        return asyncio.run(awaited(control, logprobs, fields))

    async def awaited(control: Controller, logprobs: bool, fields: dict[str, Any]) -> Any:
        original = AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0)
        async with wrap_openai(original, controller=control, logprobs=logprobs) as wrapped:
            reply = await wrapped.chat.completions.create(**fields)
            return ([chunk async for chunk in reply], reply.heedful) if fields.get("stream") else reply

    return call


def test_memory_answers_where_the_model_is_unsure(ask: Ask, server: FaultyServer) -> None:
    reply = ask(controller(), temperature=0.3, seed=5, extra_body={"vendor": 1})
    assert (type(reply).__name__, reply.object) == ("ChatCompletion", "chat.completion")
    assert reply.choices[0].message.content == "blue"
    assert reply.heedful.outcome.verdict.choice == "accept"
    assert reply.heedful.decision == reply.heedful.outcome.decision != ""
    assert "heedful" not in reply.model_dump()
    assert reply.choices[0].logprobs is None, "the caller did not ask for log-probs"
    first, second = (request.body for request in server.requests)
    assert first["messages"] == ASKED
    assert second["messages"][0] == ASKED[0], "a message that heedful did not write stays as it is"
    for body in (first, second):
        assert (body["temperature"], body["seed"], body["vendor"], body["logprobs"]) == (0.3, 5, 1, True)


def test_a_sure_answer_is_kept_at_one_call(ask: Ask, server: FaultyServer) -> None:
    reply = ask(controller(arms.choose("notes", threshold=-1.0, margin=0.0)), logprobs=True)
    assert reply.choices[0].message.content == "no idea"
    assert (reply.heedful.outcome.route.reason, len(server.requests)) == ("sure", 1)


def test_the_callers_own_log_probs_stay(server: FaultyServer, client: Any) -> None:
    wrapped = wrap_openai(client, controller=controller())
    reply = wrapped.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "What is it?"}], logprobs=True, top_logprobs=1
    )
    assert reply.choices[0].logprobs is not None
    assert {request.body["top_logprobs"] for request in server.requests} == {1}


def test_a_stream_is_held_until_the_decision_and_then_the_chosen_one(ask: Ask, server: FaultyServer) -> None:
    chunks, note = ask(controller(), stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "blue"
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert all(chunk.choices[0].logprobs is None for chunk in chunks)
    assert note.outcome.verdict.choice == "accept"
    assert [request.body["stream"] for request in server.requests] == [True, True]


def test_decisions_are_recorded_and_a_shadow_serves_the_first_answer(ask: Ask, store: SqliteStore) -> None:
    journal = SqliteJournal(store.database)
    reply = ask(controller(journal=journal, rollout=Rollout(mode="shadow")), user="ana")
    assert reply.choices[0].message.content == "no idea"
    decision = asyncio.run(journal.find(reply.heedful.decision))
    assert (decision.assignment.mode, decision.assignment.accepted) == ("shadow", 0)
    assert (dict(decision.task.scope), decision.model.name) == ({"user": "ana"}, "m")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"n": 2}, "n > 1"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "image",
        ),
        (
            {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
            "assistant",
        ),
        ({"messages": [{"role": "function", "name": "f", "content": "a"}]}, "function"),
    ],
)
def test_a_request_that_cannot_be_controlled_passes_untouched(
    fields: dict[str, Any], reason: str, ask: Ask, server: FaultyServer
) -> None:
    if "image" in reason:
        server.script = lambda request: answers("seen")
    reply = ask(controller(), **fields)
    assert reason in reply.heedful.untouched
    assert reply.heedful.decision == ""
    [request] = server.requests
    assert "logprobs" not in request.body
    assert request.body == {"model": "m", "messages": ASKED, **fields}


def test_an_error_of_the_first_pass_is_the_clients_own(ask: Ask, server: FaultyServer) -> None:
    server.script = lambda request: fails(418, "I am a teapot")
    with pytest.raises(openai.APIStatusError, match="teapot") as raised:
        ask(controller())
    assert raised.value.status_code == 418


def test_an_error_of_the_second_pass_costs_no_answer(ask: Ask, server: FaultyServer) -> None:
    server.script = lambda request: fails(500) if NOTE in request.question else answers("no idea", -0.9)
    reply = ask(controller())
    assert reply.choices[0].message.content == "no idea"
    assert [fault.stage for fault in reply.heedful.outcome.faults] == ["source:notes"]


def test_tool_calls_are_answers(server: FaultyServer, client: Any) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"at": "sky"}'}}
    body = completion("", None)
    body["choices"][0]["message"] |= {"content": None, "tool_calls": [call]}
    server.script = lambda request: sends(body)
    wrapped = wrap_openai(client, controller=controller(arms.never()))
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    reply = wrapped.chat.completions.create(model="m", messages=ASKED, tools=[tool])
    assert reply.choices[0].message.tool_calls[0].function.name == "look"
    assert json.loads(reply.heedful.outcome.answer) == {"name": "look", "arguments": {"at": "sky"}}
    again = [*ASKED, reply.choices[0].message, {"role": "tool", "tool_call_id": "c", "content": "blue"}]
    later = wrapped.chat.completions.create(model="m", messages=again, tools=[tool])
    assert later.heedful.outcome.task.earlier[-1].content == "blue"
    assert server.requests[-1].body["messages"][2]["tool_calls"] == [call]


def test_a_sampled_signal_asks_without_changing_the_request(server: FaultyServer, client: Any) -> None:
    policy = replace(arms.choose("notes", threshold=2.0, margin=0.0), signal="agreement")
    wrapped = wrap_openai(client, controller=controller(policy), logprobs=False)
    wrapped.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "What is it?"}], max_completion_tokens=9
    )
    hot = [request.body for request in server.requests if request.body.get("temperature")]
    assert hot
    assert {body["max_completion_tokens"] for body in hot} == {9}
    assert all("logprobs" not in request.body for request in server.requests)


def test_everything_else_is_the_clients_own(client: Any) -> None:
    wrapped = wrap_openai(client, controller=controller())
    is_a_client = isinstance(wrapped, OpenAI)
    assert is_a_client
    assert wrapped.api_key == "k"
    assert wrapped.embeddings is client.embeddings
    assert wrapped.chat.completions.with_raw_response is client.chat.completions.with_raw_response
    reply = wrapped.with_options(timeout=5).chat.completions.create(model="m", messages=ASKED)
    assert reply.heedful.outcome is not None, "a copy of the client is controlled too"


def test_the_fingerprint_is_that_of_the_chat_model(server: FaultyServer, client: Any) -> None:
    wrapped = wrap_openai(client, controller=controller())
    outcome = wrapped.chat.completions.create(model="m", messages=ASKED).heedful.outcome
    assert outcome.model.fingerprint == ChatModel(base_url=server.url, model="m").traits.fingerprint


@pytest.mark.parametrize("settings", [{}, {"policy": "x", "controller": controller()}])
def test_policy_or_controller_must_be_given(settings: dict[str, Any], client: Any) -> None:
    with pytest.raises(UsageError, match="either policy"):
        wrap_openai(client, **settings)


def test_a_wrapped_client_is_not_wrapped_again(client: Any) -> None:
    wrapped = wrap_openai(client, controller=controller())
    for once in (wrapped, wrapped.with_options(timeout=1)):
        with pytest.raises(UsageError, match="wrapped already"):
            wrap_openai(once, controller=controller())
