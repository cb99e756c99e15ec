"""Chat bodies of every kind: what is read, and that none of them breaks the server."""

import json
import random
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from heedful.serve.chat_call import bypass_reason, read_call
from heedful.serve.refusal import RefusalError
from tests.faulty import FaultyServer, Play, Request, answers
from tests.serve.serving import make_service, serving

BODIES = 400
ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**40, 1.5, "", "x", "\u0000", "ä🦊", [], {}, [[]], [None], {"type": "text"}),
    *(
        "user",
        "tool",
        "assistant",
        {"role": "user", "content": "hi"},
        [{"type": "text", "text": 3}],
        "x" * 5000,
    ),
)
SOUND: dict[str, Any] = {
    "model": "m+heedful/default",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Look."}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "nothing"},
        {"role": "user", "content": "When does it open?"},
    ],
    "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}],
    "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "string"}}},
    "stream": False,
    "stream_options": {"include_usage": True},
    "temperature": 0.5,
    "max_tokens": 5,
    "logprobs": False,
    "top_logprobs": 0,
    "n": 1,
    "stop": ["x"],
    "seed": 1,
}


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON value, as its container and key."""
    pairs = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    inner = [place for _, part in pairs if isinstance(part, dict | list) for place in places(part)]
    return [*((value, key) for key, _ in pairs), *inner]


def broken(rng: random.Random) -> Any:
    """A sound request with one to four places changed or removed."""
    body = json.loads(json.dumps(SOUND))
    for _ in range(rng.randint(1, 4)):
        container, key = rng.choice(places(body))
        if rng.random() < 0.3:
            del container[key]
        else:
            container[key] = json.loads(json.dumps(rng.choice(ODD)))
        if not body:
            return body
    return body


def anything(request: Request) -> Play:
    return answers("at 7 am", -0.1 if "7 am" in json.dumps(request.body) else -0.9)


def test_no_body_makes_the_server_fail(tmp_path: Path) -> None:
    """The upstream answers everything, so that every 5xx would be heedful's own."""
    rng, statuses = random.Random(7), set()
    with FaultyServer(anything) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        connection = HTTPConnection("127.0.0.1", client.port, timeout=20)
        for _ in range(BODIES):
            body = json.dumps(broken(rng))
            connection.request("POST", "/v1/chat/completions", body)
            response = connection.getresponse()
            said = response.read()
            statuses.add(response.status)
            assert response.status < 500, body
            assert b"Traceback" not in said
        connection.close()
    assert 200 in statuses


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"nul", b"\xff", b'{"a": 1', b"[" * 100_000, b'"\\ud800"'], ids=range(7)
)
def test_a_body_that_is_not_a_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(RefusalError) as refused:
        read_call(body)
    assert refused.value.status == 400


@pytest.mark.parametrize(
    ("name", "model", "policy"),
    [
        ("gpt-x+heedful/support", "gpt-x", "support"),
        ("gpt-x+heedful", "gpt-x", ""),
        ("gpt-x", "gpt-x", ""),
        ("gpt-x+heedfully", "gpt-x+heedfully", ""),
    ],
)
def test_the_suffix_of_the_model_names_the_policy(name: str, model: str, policy: str) -> None:
    call = read_call(json.dumps({"model": name, "n": 1}).encode())
    assert (call.model, call.policy) == (model, policy)
    assert json.loads(call.body) == {"model": model, "n": 1}


def test_a_sound_request_can_be_controlled() -> None:
    assert bypass_reason(SOUND) == ""
