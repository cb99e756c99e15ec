"""Chat bodies that no client should send, and schemathesis: no error that heedful causes.

usage: python -m benchmarks.fuzz [--bodies N] [--seed N] [--schemathesis EXECUTABLE [--examples N]] [--json]

The upstream accepts everything, so every status of 500 and more is heedful's own fault. With `--schemathesis`
its `run` is started against the server's OpenAPI description instead; install it in an environment of its
own.
"""

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests import faulty
from tests.serve.serving import Client, make_service, serving

TEXTS = (
    *("", " ", "hello", "\u0000", "\ud83d\ude00", "\u202e", "a" * 5000, "7 am", "{}", "<script>", "x\ny"),
    *("+heedful", "m+heedful/", "m+heedful/default", "m+heedful/none", "m+heedfulx", "default", "user=ann"),
)
NUMBERS = (0, 1, -1, 2, 0.5, 1e308, -1e-300, 2**31, 2**63, 2**64, 10**40)
FIELDS = (
    *("n", "stream", "stream_options", "tools", "tool_choice", "response_format", "temperature", "seed"),
    *("logprobs", "top_logprobs", "max_tokens", "max_completion_tokens", "audio", "modalities", "user"),
    *("stop", "metadata", "functions", "reasoning_effort", "vendor", "messages", "model", "include_usage"),
    *("role", "content", "tool_calls", "tool_call_id", "name", "type", "text", "image_url", "function"),
    *("arguments", "parameters", "json_schema", "schema", "refusal", "description", "id", "properties"),
)
ROLES = ("system", "developer", "user", "assistant", "tool", "function", "critic")
RAW = (
    *(b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"messages": NaN}', b'{"model": "\\ud800", "messages": []}'),
    *(b'{"messages": [{"role": "user", "content": "\\ud800"}]}', b"[" * 50_000, b'{"a":' * 5_000, b"\x00"),
    *(b'{"messages": [{"role": "user", "content": "a"}], "messages": 1}', b"1e999", b'"x"'),
)
HEADERS = ("x-heedful-policy", "x-heedful-bank", "x-heedful-scope")
HEADER_VALUES = ("default", "fixed", "user=ann", "user=", "caller=ann", "a=b, a=b", "=", "\u00e9", "x" * 3000)


def valid_body(chance: random.Random) -> dict[str, Any]:
    """A request as a client might send it."""
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Is the desk open?"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "yes"},
        {"role": "user", "content": f"When does desk {chance.randrange(99)} open?"},
    ]
    schema = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}}
    body: dict[str, Any] = {"model": "m", "messages": chance.choice([turns, turns[-1:], turns[:4]])}
    more = {"tools": [tool], "response_format": schema, "temperature": 0.7, "stream": True, "max_tokens": 9}
    return {**body, **{name: more[name] for name in more if chance.random() < 0.3}}


def odd_value(chance: random.Random, depth: int = 0) -> object:
    """Any JSON value."""
    kinds = ["text", "number", "constant", "role", *(["list", "object"] if depth < 4 else [])]
    match chance.choice(kinds):
        case "text":
            return chance.choice(TEXTS)
        case "number":
            return chance.choice(NUMBERS)
        case "role":
            return chance.choice(ROLES)
        case "list":
            return [odd_value(chance, depth + 1) for _ in range(chance.randrange(4))]
        case "object":
            names = chance.sample(FIELDS, chance.randrange(4))
            return {name: odd_value(chance, depth + 1) for name in names}
    return chance.choice((None, True, False))


def mutated(value: object, chance: random.Random, rate: float) -> object:
    """A copy in which some values are replaced, left out or added."""
    if chance.random() < rate:
        return odd_value(chance)
    if isinstance(value, list):
        return [mutated(part, chance, rate) for part in value if chance.random() > rate / 2]
    if isinstance(value, dict):
        copy = {k: mutated(v, chance, rate) for k, v in value.items() if chance.random() > rate / 2}
        if chance.random() < rate * 2:
            copy[chance.choice(FIELDS)] = odd_value(chance)
        return copy
    return value


def bodies(count: int, seed: int) -> Iterator[tuple[bytes, dict[str, str]]]:
    """Bodies with their headers: mutated requests, broken JSON, and bytes that are no JSON at all."""
    for number in range(count):
        chance = random.Random(seed * 1_000_003 + number)
        body = json.dumps(mutated(valid_body(chance), chance, chance.choice((0.02, 0.1, 0.3)))).encode()
        if chance.random() < 0.1:
            cut = chance.randrange(len(body) + 1)
            body = body[:cut] + chance.randbytes(chance.randrange(3)) + body[cut + chance.randrange(2) :]
        if chance.random() < 0.05:
            body = chance.choice(RAW)
        names = [name for name in HEADERS if chance.random() < 0.1]
        yield body, {name: chance.choice(HEADER_VALUES) for name in names}


def upstream_script(request: faulty.Request) -> faulty.Play:
    """Accepts everything; half of the answers are unsure."""
    sure = len(json.dumps(request.body)) % 2
    return faulty.answers("At 7 am.", -0.1 if sure else -0.9)


def fuzz(client: Client, count: int, seed: int) -> dict[str, Any]:
    """Send bodies one after another; the statuses, and what no reply may be."""
    statuses: Counter[int] = Counter()
    bypasses = 0
    faults: list[dict[str, object]] = []
    for number, (body, headers) in enumerate(bodies(count, seed)):
        status, reply, named = send(client.port, body, headers)
        statuses[status] += 1
        bypasses += "x-heedful-bypass" in named
        unnamed = status == 200 and not {"x-heedful-bypass", "x-heedful-decision"} & named
        if status == 0 or status >= 500 or b"Traceback" in reply or unnamed:
            faults.append({"number": number, "status": status, "reply": reply[:200].decode(errors="replace")})
    client.send("GET", "/v1/decisions/000000000000")  # which writes all decisions before it
    if dropped := client.service.journal.dropped:
        faults.append({"decisions that cannot be written": dropped})
    controlled = statuses[200] - bypasses
    return {"bodies": count, "statuses": dict(statuses), "controlled": controlled, "faults": faults}


def send(port: int, body: bytes, headers: dict[str, str]) -> tuple[int, bytes, set[str]]:
    """The status, the reply and the names of its headers; status 0: the server broke off."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        encoded = {name: value.encode() for name, value in headers.items()}
        connection.request("POST", "/v1/chat/completions", body, encoded)
        response = connection.getresponse()
        return response.status, response.read(), {name.lower() for name, _ in response.getheaders()}
    except (HTTPException, OSError) as error:
        return 0, repr(error).encode(), set()
    finally:
        connection.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bodies", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--schemathesis", help="the executable of schemathesis")
    parser.add_argument("--examples", type=int, default=300, help="of schemathesis, per operation")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with TemporaryDirectory() as folder, faulty.FaultyServer(upstream_script) as upstream:
        service = make_service(upstream.url, Path(folder))
        with serving(service) as client:
            if options.schemathesis:
                address = f"http://127.0.0.1:{client.port}/openapi.json"
                words = ["--max-examples", str(options.examples), "--no-color"]
                # a schema cannot say which scopes a key may use, nor that no key may occur twice
                words += ["--exclude-checks", "positive_data_acceptance"]
                return subprocess.run([options.schemathesis, "run", address, *words], cwd=folder).returncode
            result = fuzz(client, options.bodies, options.seed)
    print(json.dumps(result, indent=2 if options.json else None))
    return 1 if result["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
