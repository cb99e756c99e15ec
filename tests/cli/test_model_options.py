"""Commands with endpoints that reject log-probs, temperature or max_tokens."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Heedful
from tests.cli.test_study import one_sentence
from tests.faulty import FaultyServer, Play, Request, answers_without_logprobs, fails

REJECTED = ("logprobs", "max_tokens", "temperature")


def reasoner(request: Request) -> Play:
    """A reasoning model that knows the desk's hours only from the note, and doubts itself without it."""
    for name in REJECTED:
        if name in request.body:
            return fails(400, f"Unsupported parameter: '{name}' is not supported with this model.")
    said = json.dumps(request.body["messages"])
    if "How likely" in said:
        return answers_without_logprobs("95" if "opens at 7" in said else "20")
    return answers_without_logprobs("<think>Hm.</think>At 7 am." if "opens at 7" in said else "At 9 am.")


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer(reasoner) as running:
        yield running


@pytest.fixture
def bank(heedful: Heedful, tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "notes.txt").write_text("The desk opens at 7 am.\n")
    assert heedful("bank", "import", str(tmp_path / "notes.txt"), "--bank", "b").code == 0
    return ("--bank", "b", "--recall", "bm25")


def test_ask_works_with_an_endpoint_without_logprobs_and_learns_its_ways_once(
    heedful: Heedful, server: FaultyServer, bank: tuple[str, ...]
) -> None:
    words = ("When does the desk open?", "--url", server.url, *bank, "--json")
    first = heedful("ask", *words)
    assert first.code == 0, first.err
    assert (first.json["answer"], first.json["confidence"], first.json["reason"]) == ("At 9 am.", 1.0, "sure")
    assert first.json["calls"] == 4, "an answer and three samples that agree with it"
    asked = len(server.requests)
    assert heedful("ask", *words).json["calls"] == 4
    assert len(server.requests) == asked + 4


def test_the_threshold_of_a_signal_is_its_own(
    heedful: Heedful, server: FaultyServer, bank: tuple[str, ...]
) -> None:
    words = ("When does the desk open?", "--url", server.url, *bank, "--no-logprobs", "--signal", "stated")
    found = heedful("ask", *words, "--json").json
    assert (found["answer"], found["verdict"], found["confidence"]) == ("At 7 am.", "accept", 0.2)
    kept = heedful("ask", *words, "--threshold", "0.1", "--json").json
    assert (kept["answer"], kept["route"]) == ("At 9 am.", "keep")


def test_probe_writes_down_what_works(heedful: Heedful, server: FaultyServer) -> None:
    found = heedful("probe", server.url, "--model", "m", "--header", "X-Team: blue")
    assert found.code == 0, found.err
    assert "not sent       logprobs, max_tokens, temperature" in found.out
    assert server.requests[0].headers["X-Team"] == "blue"
    asked = len(server.requests)
    words = ("--url", server.url, "--model", "m", "--arm", "never", "--extra", '{"reasoning_effort": "low"}')
    assert heedful("ask", "When?", *words).code == 0
    assert len(server.requests) == asked + 1
    assert server.requests[-1].body["reasoning_effort"] == "low"
    assert not set(REJECTED) & set(server.requests[-1].body)


def test_a_study_runs_without_logprobs(heedful: Heedful, server: FaultyServer, tmp_path: Path) -> None:
    for side in ("fit", "test"):
        rows = [{"question": f"When does {side} desk {n} open?", "answer": "at 7 am"} for n in range(12)]
        (tmp_path / f"{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "notes.txt").write_text("Every desk opens at 7 am.\n")
    (tmp_path / "s.toml").write_text(
        f'name = "s"\n[model]\nurl = "{server.url}"\nheaders = {{X-Team = "blue"}}\n'
        'extra = {reasoning_effort = "low"}\n[questions]\nfit = "fit.jsonl"\ntest = "test.jsonl"\n'
        '[sources.notes]\nbank = "notes.txt"\n[fit]\nsignals = ["stated"]\n'
        'families = ["choose"]\nfirsts = ["none"]\n'
    )
    done = heedful("study", "run", str(tmp_path / "s.toml"), "--out", str(tmp_path / "out"), "--json")
    assert done.code == 0, done.err
    assert (done.json["policy"]["signal"], done.json["arms"]["heedful"]["accuracy"]) == ("stated", 1)
    last = server.requests[-1]
    assert (last.headers["X-Team"], last.body["reasoning_effort"]) == ("blue", "low")


@pytest.mark.parametrize(
    ("extra", "says"),
    [("{", "is not JSON"), ("[1]", "is not a JSON object"), ('{"temperature": 3}', "cannot set temperature")],
)
def test_extra_fields_that_are_no_object_are_refused(heedful: Heedful, extra: str, says: str) -> None:
    one_sentence(heedful("ask", "hello?", "--url", "http://127.0.0.1:9/v1", "--extra", extra), 2, says)


def test_a_header_without_a_value_is_refused(heedful: Heedful) -> None:
    one_sentence(
        heedful("ask", "hello?", "--url", "http://127.0.0.1:9/v1", "--header", "X-Team"),
        2,
        "X-Team",
        "NAME: VALUE",
    )


@pytest.mark.parametrize(("option", "value"), [("--header", "X-Team: desk"), ("--extra", '{"top_k": 1}')])
def test_options_of_a_request_are_refused_with_the_embedded_model(
    option: str, value: str, heedful: Heedful
) -> None:
    one_sentence(heedful("ask", "hello?", option, value), 2, f"{option} has no effect on the embedded model")
