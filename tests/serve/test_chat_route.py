"""Chat completions without streaming, against a scripted upstream on loopback."""

import json
from http.client import IncompleteRead
from pathlib import Path
from typing import Any

import pytest

from heedful.decision_ids import DIGITS
from tests.faulty import (
    FaultyServer,
    Play,
    Request,
    answers,
    answers_without_logprobs,
    body,
    completion,
    cuts_the_stream,
    fails,
    hangs_up,
    sends,
    words,
)
from tests.serve.serving import make_service, serving

GUESS, KNOWN = "at noon", "at 7 am"


def unsure(request: Request) -> Play:
    """Unsure without the note, sure with it."""
    said = json.dumps(request.body["messages"])
    return answers(KNOWN, -0.1) if "7 am" in said else answers(GUESS, -0.9)


def test_a_sure_answer_is_kept(tmp_path: Path) -> None:
    with (
        FaultyServer(lambda _: answers("noon", -0.1)) as upstream,
        serving(make_service(upstream.url, tmp_path)) as client,
    ):
        answer = client.ask()
    assert (answer.status, answer.text, len(upstream.requests)) == (200, "noon", 1)
    assert answer.headers["x-heedful-route"] == "keep"
    assert answer.headers["x-heedful-verdict"] == "none"
    assert len(answer.headers["x-heedful-decision"]) == DIGITS
    assert answer.json["choices"][0]["logprobs"] is None


def test_an_unsure_answer_is_replaced_and_usage_names_each_pass(tmp_path: Path) -> None:
    with FaultyServer(unsure) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        answer = client.ask()
    assert answer.text == KNOWN
    assert (answer.headers["x-heedful-route"], answer.headers["x-heedful-verdict"]) == ("consult", "accept")
    usage = answer.json["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (22, 5)
    shares = [(one["source"], one["completion_tokens"]) for one in usage["heedful"]["passes"]]
    assert shares == [("none", 2), ("memory", 3)]


def test_a_failing_second_pass_leaves_the_first_answer(tmp_path: Path) -> None:
    def script(request: Request) -> Play:
        return fails(500) if "7 am" in json.dumps(request.body) else answers(GUESS, -0.9)

    with FaultyServer(script) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        answer = client.ask()
    assert (answer.status, answer.text) == (200, GUESS)
    assert answer.headers["x-heedful-verdict"] == "rollback"


def test_unknown_fields_reach_the_upstream_in_every_pass_and_come_back(tmp_path: Path) -> None:
    def script(request: Request) -> Play:
        reply = completion(KNOWN, words(KNOWN, -0.9), finish="length")
        reply["choices"][0]["message"]["vendor_note"] = 7
        return sends({**reply, "system_fingerprint": "f1"})

    given: dict[str, Any] = {"seed": 5, "stop": ["x"], "temperature": 0.3, "vendor": {"a": 1}}
    with FaultyServer(script) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        answer = client.ask(**given)
    assert len(upstream.requests) == 2
    assert all(given.items() <= request.body.items() for request in upstream.requests)
    assert all("max_tokens" not in request.body for request in upstream.requests)
    choice = answer.json["choices"][0]
    assert (answer.json["system_fingerprint"], choice["finish_reason"]) == ("f1", "length")
    assert choice["message"]["vendor_note"] == 7


def test_a_conversation_keeps_its_own_json_in_both_passes(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}, "vendor": 1}
    messages = [
        {"role": "developer", "content": "Be brief.", "name": "boss"},
        {"role": "user", "content": [{"type": "text", "text": "Look."}], "name": "ann"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "nothing"},
        {"role": "user", "content": "When does it open?", "name": "ann"},
    ]
    with FaultyServer(unsure) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        body = {"model": "m", "messages": messages}
        answer = client.post("/v1/chat/completions", body)
    first, second = (request.body["messages"] for request in upstream.requests)
    assert answer.text == KNOWN
    assert first == messages
    assert second[:4] == messages[:4]
    assert second[4]["name"] == "ann"
    assert second[4]["content"].startswith("When does it open?\n\nNotes that may help:")


def test_a_tool_call_is_an_answer(tmp_path: Path) -> None:
    reply = completion("", words("look", -0.1), finish="tool_calls")
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
    reply["choices"][0]["message"] = {"role": "assistant", "content": None, "tool_calls": [call]}
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    with (
        FaultyServer(lambda _: sends(reply)) as upstream,
        serving(make_service(upstream.url, tmp_path)) as client,
    ):
        answer = client.ask(tools=tools)
    choice = answer.json["choices"][0]
    assert choice["message"]["tool_calls"] == [call]
    assert choice["finish_reason"] == "tool_calls"
    assert upstream.requests[0].body["tools"] == tools


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"n": 2}, "n is not 1"),
        ({"modalities": ["text", "audio"]}, "audio"),
        ({"tools": [{"type": "custom", "custom": {"name": "sql"}}]}, "a tool that is not a function"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "content other than text",
        ),
        (
            {"messages": [{"role": "assistant", "content": "Well,"}]},
            "the last turn is not the user's or a tool's",
        ),
        ({"messages": [{"role": "oracle", "content": "Hm."}]}, "unknown role"),
        ({"messages": "hello"}, "no messages"),
    ],
)
def test_what_cannot_be_controlled_passes_through_byte_for_byte(
    fields: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    sent = b'{"odd":   "spaces"}'
    with (
        FaultyServer(lambda _: body(sent, 200, **{"X-Own": "1"})) as upstream,
        serving(make_service(upstream.url, tmp_path)) as client,
    ):
        answer = client.ask(**fields)
    assert (answer.body, answer.headers["x-heedful-bypass"], answer.headers["x-own"]) == (sent, reason, "1")
    assert "logprobs" not in upstream.requests[0].body
    assert "x-heedful-decision" not in answer.headers


def test_an_upstream_that_rejects_log_probs_answers_and_is_then_bypassed(tmp_path: Path) -> None:
    def script(request: Request) -> Play:
        if "logprobs" in request.body:
            return fails(400, "logprobs is not supported")
        return answers_without_logprobs("noon")

    with FaultyServer(script) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        first, second = client.ask(), client.ask()
    assert (first.status, first.text, first.headers["x-heedful-route"]) == (200, "noon", "keep")
    assert (second.status, second.headers["x-heedful-bypass"]) == (200, "no usable signal")


def test_an_upstream_that_ignores_the_wish_for_log_probs_is_bypassed_after_three_replies(
    tmp_path: Path,
) -> None:
    with (
        FaultyServer(lambda _: answers_without_logprobs("noon")) as upstream,
        serving(make_service(upstream.url, tmp_path)) as client,
    ):
        routes = [client.ask().headers.get("x-heedful-route") for _ in range(4)]
        bypassed = client.ask()
    assert routes == ["keep", "keep", "keep", None]
    assert (bypassed.text, bypassed.headers["x-heedful-bypass"]) == ("noon", "no usable signal")


def test_a_reply_that_breaks_off_upstream_breaks_off_for_the_client(tmp_path: Path) -> None:
    with (
        FaultyServer(lambda _: cuts_the_stream) as upstream,
        serving(make_service(upstream.url, tmp_path)) as client,
        pytest.raises(IncompleteRead),
    ):
        client.ask(n=2)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503])
def test_an_error_of_the_upstream_reaches_the_client_unchanged(status: int, tmp_path: Path) -> None:
    own = b'{"error": {"message": "their words", "extra": [1]}}'
    with (
        FaultyServer(lambda _: body(own, status, **{"Retry-After": "7"})) as upstream,
        serving(make_service(upstream.url, tmp_path)) as client,
    ):
        answer = client.ask()
    assert (answer.status, answer.body, answer.headers["retry-after"]) == (status, own, "7")
    assert len(upstream.requests) == 1


def test_an_upstream_that_is_down_is_a_bad_gateway(tmp_path: Path) -> None:
    with (
        FaultyServer(lambda _: hangs_up) as upstream,
        serving(make_service(upstream.url, tmp_path)) as client,
    ):
        answer = client.ask()
    assert answer.status == 502
    assert "upstream failed" in answer.json["error"]["message"]


def test_a_reply_that_is_not_a_completion_is_relayed(tmp_path: Path) -> None:
    with (
        FaultyServer(lambda _: body(b"<html>busy</html>")) as upstream,
        serving(make_service(upstream.url, tmp_path)) as client,
    ):
        assert client.ask().body == b"<html>busy</html>"


def test_a_body_that_is_not_json_is_refused(tmp_path: Path) -> None:
    with (
        FaultyServer(lambda _: answers("x")) as upstream,
        serving(make_service(upstream.url, tmp_path)) as client,
    ):
        answer = client.send("POST", "/v1/chat/completions", b"{nonsense")
    assert answer.status == 400
    assert "not valid JSON" in answer.json["error"]["message"]


@pytest.mark.parametrize(
    ("name", "arguments", "verdict"),
    [
        ("look", '{"where": "desk"}', "accept"),
        ("look", '{"where": 7}', "rollback"),
        ("look", "not JSON", "rollback"),
        ("burn", '{"where": "desk"}', "rollback"),
    ],
)
def test_a_second_pass_may_call_known_tools_with_fitting_arguments_only(
    name: str, arguments: str, verdict: str, tmp_path: Path
) -> None:
    def script(request: Request) -> Play:
        if "7 am" not in json.dumps(request.body["messages"]):
            return unsure(request)
        reply = completion("", words("look", -0.1), finish="tool_calls")
        call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}
        reply["choices"][0]["message"] = {"role": "assistant", "content": None, "tool_calls": [call]}
        return sends(reply)

    wanted = {"type": "object", "properties": {"where": {"type": "string"}}, "required": ["where"]}
    tools = [{"type": "function", "function": {"name": "look", "parameters": wanted}}]
    with FaultyServer(script) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        answer = client.ask(tools=tools)
    message = answer.json["choices"][0]["message"]
    assert answer.headers["x-heedful-verdict"] == verdict
    assert ("tool_calls" in message, message["content"]) == (
        (True, None) if verdict == "accept" else (False, GUESS)
    )


def test_several_user_turns_may_search_the_banks(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "About the desk."},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "When does it open?"},
    ]
    with (
        FaultyServer(unsure) as upstream,
        serving(make_service(upstream.url, tmp_path, query_turns=2)) as client,
    ):
        id = client.ask(messages=messages).headers["x-heedful-decision"]
        decision = client.send("GET", f"/v1/decisions/{id}").json
    assert decision["task"]["query"] == "About the desk.\nWhen does it open?"
