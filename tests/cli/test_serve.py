"""`heedful serve` as its own process, with a bundle of a real study."""

import base64
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from heedful import ChatModel, Controller, Database, EmbeddedModel, arms
from heedful.protocol.bundle import read_bundle, write_bundle
from heedful.protocol.export import export_study
from tests.cli.conftest import Heedful
from tests.faulty import FaultyServer, Play, Request, answers, fails
from tests.protocol.shelves import QUICK, shelf_model, through_lock, written
from tests.serve.serving import Answer, read


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    space, _ = through_lock(written(folder, QUICK), shelf_model())
    write_bundle(folder / "mine.policy", export_study(space))
    return folder / "mine.policy"


@dataclass
class Process:
    """A running server."""

    process: "subprocess.Popen[str]"
    port: int
    banner: Sequence[str]
    """What it printed before it accepted requests."""

    def send(self, method: str, path: str, value: object = None) -> Answer:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, None if value is None else json.dumps(value))
            return read(connection.getresponse())
        finally:
            connection.close()

    def ask(self, question: str, **fields: Any) -> Answer:
        messages = [{"role": "user", "content": question}]
        return self.send("POST", "/v1/chat/completions", {"messages": messages, **fields})

    def line_with(self, words: str) -> str:
        """The next line on stderr with these words."""
        assert self.process.stderr is not None
        return next(line for line in self.process.stderr if words in line)


@contextmanager
def started(folder: Path, *words: str) -> Iterator[Process]:
    ready = folder / "ready"
    command = [sys.executable, "-m", "heedful", "serve", "--port", "0", "--ready-file", str(ready), *words]
    environment = {**os.environ, "HEEDFUL_HOME": str(folder)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stderr is not None
        banner = [next(process.stderr)]
        while "curl" not in banner[-1]:
            banner.append(next(process.stderr))
        yield Process(process, int(ready.read_text()), banner)
    finally:
        process.terminate()
        process.communicate(timeout=30)


def shelves(request: Request) -> Play:
    """Sure with the note about the shelf, unsure without."""
    said = json.dumps(request.body["messages"])
    return answers("item3", -0.01) if "Notes" in said else answers("item0", -3.0)


def test_a_bundle_answers_as_the_library_does_with_it(bundle: Path, tmp_path: Path) -> None:
    question = "What is on shelf 3?"
    with (
        FaultyServer(shelves) as upstream,
        started(tmp_path, "--policy", str(bundle), "--upstream", upstream.url) as server,
    ):
        answer = server.ask(question)
        decision = server.send("GET", f"/v1/decisions/{answer.headers['x-heedful-decision']}").json
        served = [request.body for request in upstream.requests]
        upstream.requests.clear()
        library = Controller.from_bundle(bundle, model=ChatModel(base_url=upstream.url))
        outcome = library.answer_sync(question)
        asked = [request.body for request in upstream.requests]
    assert answer.text == outcome.answer
    assert decision["route"]["choice"] == outcome.route.choice == "consult"
    assert decision["policy_id"]
    assert [body["messages"] for body in served] == [body["messages"] for body in asked]
    assert [(b["max_tokens"], b["temperature"]) for b in served] == [
        (b["max_tokens"], b["temperature"]) for b in asked
    ]


def test_the_dashboard_shows_what_was_served_and_what_is_locked(bundle: Path, tmp_path: Path) -> None:
    with (
        FaultyServer(shelves) as upstream,
        started(tmp_path, "--policy", str(bundle), "--upstream", upstream.url) as server,
    ):
        id = server.ask("What is on shelf 3?").headers["x-heedful-decision"]
        assert server.send("GET", f"/v1/decisions/{id}").status == 200
        today = server.send("GET", "/")
        assert (today.status, "default-src 'none'" in today.headers["content-security-policy"]) == (200, True)
        assert "What is on shelf 3?" in server.send("GET", f"/decisions/{id}").body.decode()
        assert read_bundle(bundle).study in server.send("GET", "/policy").body.decode()


def test_with_keys_the_dashboard_needs_one(bundle: Path, tmp_path: Path, heedful: Heedful) -> None:
    keys, made = tmp_path / "keys.toml", {}
    for name, words in (("ann", ()), ("root", ("--admin",))):
        done = heedful("key", "new", name, *words)
        keys.write_text((keys.read_text() if keys.exists() else "") + done.out)
        made[name] = next(word for word in done.err.split() if word.startswith("hk-"))
    with (
        FaultyServer(shelves) as upstream,
        started(tmp_path, "--policy", str(bundle), "--upstream", upstream.url, "--keys", str(keys)) as server,
    ):
        statuses = {}
        for name, key in {"nobody": "", **made}.items():
            login = base64.b64encode(f"me:{key}".encode()).decode()
            connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
            connection.request("GET", "/memory", headers={"Authorization": f"Basic {login}"} if key else {})
            answer = read(connection.getresponse())
            statuses[name] = answer.status
            assert ("www-authenticate" in answer.headers) == (name == "nobody")
            connection.close()
    assert statuses == {"nobody": 401, "ann": 200, "root": 200}


def test_a_shadow_serves_first_answers_and_promotion_waits_for_grades(
    bundle: Path, tmp_path: Path, heedful: Heedful
) -> None:
    with FaultyServer(shelves) as upstream:
        words = ("--policy", str(bundle), "--upstream", upstream.url)
        with started(tmp_path, *words, "--shadow") as server:
            answer = server.ask("What is on shelf 3?")
            decision = server.send("GET", f"/v1/decisions/{answer.headers['x-heedful-decision']}").json
        store = str(next(tmp_path.glob("*.db")))
        refused = heedful("serve", "--port", "0", *words, "--promote", "--store", store)
    assert decision["assignment"]["mode"] == "shadow"
    assert answer.text == decision["answer"] != "item3"
    assert (refused.code, "cannot be promoted: at most" in refused.err) == (2, True), refused.err


def test_a_policy_with_another_model_is_not_promoted_by_these_shadows(
    bundle: Path, tmp_path: Path, heedful: Heedful
) -> None:
    with FaultyServer(shelves) as upstream, FaultyServer(shelves) as other:
        with started(tmp_path, "--policy", str(bundle), "--upstream", upstream.url, "--shadow") as server:
            decision = server.ask("What is on shelf 3?").headers["x-heedful-decision"]
            assert server.send("GET", f"/v1/decisions/{decision}").status == 200
        store = str(next(tmp_path.glob("*.db")))
        words = ("--policy", str(bundle), "--upstream", other.url, "--promote", "--store", store)
        refused = heedful("serve", "--port", "0", *words)
    assert (refused.code, "no shadow decisions of it with this endpoint" in refused.err) == (2, True), (
        refused.err
    )


def test_the_report_and_the_promotion_look_at_the_same_decisions(tmp_path: Path, heedful: Heedful) -> None:
    store = str(tmp_path / "s.db")
    heedful("bank", "add", "Every shelf holds nails.", "--kind", "fact", "--store", store)
    with FaultyServer(shelves) as upstream:
        words = ("--upstream", upstream.url, "--recall", "bm25", "--store", store)
        with started(tmp_path, *words, "--shadow") as server:
            answers = [server.ask(f"What is on shelf {n}?", model="fake-1") for n in range(3)]
            for answer in answers:
                given = {"decision": answer.headers["x-heedful-decision"], "answer": "nails"}
                assert server.send("POST", "/v1/feedback", given).status == 200
        report = heedful("shadow", "report", "--store", store, "--json").json
        unknown = heedful("shadow", "report", "--store", store, "--model", "fake-2")
        promote = ("serve", "--port", "0", *words, "--promote", "--harm-limit", "0.001")
        refused = heedful(*promote)
        other = heedful(*promote, "--model", "fake-2")
        heedful("bank", "add", "Shelves are counted on Mondays.", "--kind", "fact", "--store", store)
        changed = heedful(*promote)
    assert (report["answers"], report["models"], report["others"]) == (3, {"fake-1": 3}, 0)
    bound = f"at most {report['harm_bound']:.2%}"
    assert (refused.code, bound in refused.err) == (2, True), refused.err
    assert "shadow decisions are about fake-1, not about fake-2" in other.err
    assert "changed after all of its 3 shadow decisions" in changed.err
    assert (unknown.code, "there are: fake-1" in unknown.err) == (2, True)


def test_a_canary_answers_the_same_users_every_time(bundle: Path, tmp_path: Path) -> None:
    with (
        FaultyServer(shelves) as upstream,
        started(tmp_path, "--policy", str(bundle), "--upstream", upstream.url, "--canary", "0.5") as server,
    ):
        texts = {server.ask(f"What is on shelf {n}?").text for n in (3, 3, 3)}
        arms = {
            server.send(
                "GET", f"/v1/decisions/{server.ask(f'Which one {n}?').headers['x-heedful-decision']}"
            ).json["assignment"]["arm"]
            for n in range(12)
        }
    assert len(texts) == 1
    assert arms == {"policy", "first"}


def test_an_upstream_without_log_probs_is_served_without_control(tmp_path: Path) -> None:
    def refusing(request: Request) -> Play:
        return fails(400, "logprobs is not supported") if "logprobs" in request.body else answers("noon")

    with (
        FaultyServer(refusing) as upstream,
        started(tmp_path, "--upstream", upstream.url, "--recall", "bm25") as server,
    ):
        said = "".join(server.banner)
        answer = server.ask("When does the desk open?")
    assert (answer.text, answer.headers["x-heedful-bypass"]) == ("noon", "no usable signal")
    assert "returns no log-probs, so all requests pass through" in said
    assert "prior decides" not in said
    assert "has no entries" not in said


@pytest.mark.engine
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_without_options_the_banner_s_curl_line_works(engine: EmbeddedModel, home: Path) -> None:
    command = [sys.executable, "-m", "heedful", "serve", "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        banner = [next(process.stderr)]
        while "try: curl" not in banner[-1]:
            banner.append(next(process.stderr))
        words = shlex.split(banner[-1].partition("try: ")[2])
        done = subprocess.run([*words, "--silent"], capture_output=True, text=True, timeout=120)
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert json.loads(done.stdout)["choices"][0]["message"]["content"]
    said = "".join(banner)
    assert "in front of the embedded model smollm2-135m" in said
    assert "no --policy: a cautious shipped prior decides" in said
    assert "no --keys: anybody on this machine may call" in said


@pytest.mark.parametrize("words", [(), ("--telemetry",)])
def test_spans_are_off_unless_they_are_wanted(words: tuple[str, ...], bundle: Path, tmp_path: Path) -> None:
    with (
        FaultyServer(shelves) as upstream,
        started(tmp_path, "--policy", str(bundle), "--upstream", upstream.url, *words) as server,
    ):
        assert ("no OpenTelemetry SDK is set up" in "".join(server.banner)) == bool(words)
        assert server.ask("What is on shelf 3?").text == "item3"


def test_weights_that_cannot_be_downloaded_do_not_keep_the_server_from_starting(
    tmp_path: Path, heedful: Heedful, monkeypatch: pytest.MonkeyPatch
) -> None:
    heedful("bank", "add", "The desk opens at 7 am.", "--kind", "fact", "--store", str(tmp_path / "s.db"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "0")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with (
        FaultyServer(lambda _: answers("noon", -0.9)) as upstream,
        started(tmp_path, "--upstream", upstream.url, "--store", str(tmp_path / "s.db")) as server,
    ):
        lines = "".join(server.banner)
        ready, answer = server.send("GET", "/readyz"), server.ask("When does the desk open?")
    assert "downloading the weights all-minilm-l6-v2" in lines
    assert "serving without bank default:" in lines
    assert (ready.status, list(ready.json["without_memory"])) == (200, ["default"])
    assert answer.text == "noon"


def test_a_hangup_swaps_the_policy(bundle: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.policy"
    file.write_bytes(bundle.read_bytes())
    with (
        FaultyServer(shelves) as upstream,
        started(tmp_path, "--policy", f"desk={file}", "--upstream", upstream.url) as server,
    ):
        before = server.ask("What is on shelf 3?")
        write_bundle(file, replace(read_bundle(file), policy=arms.never()))
        server.process.send_signal(signal.SIGHUP)
        line = server.line_with('"event":"reload"')
        after = server.ask("What is on shelf 3?", model="m+heedful/desk")
    assert (before.headers["x-heedful-route"], after.headers["x-heedful-route"]) == ("consult", "keep")
    assert json.loads(line)["policies"] == ["desk"]


def test_feedback_and_shown_decisions_survive_kill_9(bundle: Path, tmp_path: Path) -> None:
    with (
        FaultyServer(shelves) as upstream,
        started(tmp_path, "--policy", str(bundle), "--upstream", upstream.url) as server,
    ):
        ids = [server.ask(f"What is on shelf {n}?").headers["x-heedful-decision"] for n in range(4)]
        told = server.send("POST", "/v1/feedback", {"decision": ids[0], "answer": "item3"})
        shown = server.send("GET", f"/v1/decisions/{ids[1]}")
        server.process.kill()
        server.process.wait()
    database = Database(tmp_path / "heedful.db")
    with database.reading() as connection:
        kept = {row["id"] for row in connection.execute("SELECT id FROM decisions")}
        given = [row["decision"] for row in connection.execute("SELECT decision FROM feedback")]
    database.close()
    assert (told.status, shown.status, given) == (200, 200, [ids[0]])
    assert set(ids[:2]) <= kept


def test_logs_have_no_prompts_and_no_answers(bundle: Path, tmp_path: Path) -> None:
    with (
        FaultyServer(shelves) as upstream,
        started(tmp_path, "--policy", str(bundle), "--upstream", upstream.url) as server,
    ):
        server.ask("What is on shelf 3?")
        line = server.line_with("/v1/chat/completions")
    about = json.loads(line)
    assert (about["status"], about["route"], about["path"]) == (200, "consult", "/v1/chat/completions")
    assert "shelf" not in line
    assert "item" not in line


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--host", "0.0.0.0"], "without --keys the server listens on this machine only"),
        (["--policy", "no.policy"], "no.policy"),
        (["--policy", "a=x", "--policy", "a=y"], "two policies are called 'a'"),
        (["--policy", "a=x", "--bank", "b"], "--bank has no effect with --policy"),
        (["--upstream", ""], "--upstream has no effect if it is empty"),
        (["--strict"], "--strict has no effect without --policy"),
        (["--keys", "no.toml"], "cannot read the keys"),
        (["--promote", "--shadow"], "--promote ends the shadow"),
        (["--harm-limit", "0.1"], "--harm-limit has no effect without --promote"),
        (["--canary", "0.1", "--shadow"], "--canary has no effect with --shadow"),
        (["--upstream", "ftp://x"], "is not a supported URL"),
        (["--upstream", "http://127.0.0.1:9/v1?x=1"], "--upstream has a query or a fragment"),
        (["--upstream", "http://127.0.0.1:9/v1#x"], "--upstream has a query or a fragment"),
        (["--weights", "smollm2-135m"], "--weights has no effect on an endpoint"),
        (["--threads", "2"], "--threads has no effect on an endpoint"),
        (["--policy", "a=x", "--threads", "2"], "--threads has no effect on an endpoint"),
        (["--canary", "0", "--explore", "0.1"], "--explore has no effect with --canary 0"),
        (["--ready-file", "no/such/folder/ready"], "the folder no/such/folder is missing or not writable"),
        (["--ready-file", "."], "cannot write the ready file .: it is a folder"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_sentence(
    words: list[str], problem: str, heedful: Heedful
) -> None:
    done = heedful("serve", "--port", "0", "--upstream", "http://127.0.0.1:9/v1", *words)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert problem in done.err


@pytest.mark.parametrize("words", [("--model", "m"), ("--header", "X: $NOPE")])
def test_options_of_an_endpoint_are_refused_with_the_embedded_model(
    words: tuple[str, ...], heedful: Heedful
) -> None:
    done = heedful("serve", "--port", "0", *words)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert f"{words[0]} has no effect on the embedded model; it needs --upstream" in done.err


def test_a_header_whose_variable_is_not_set_is_refused(heedful: Heedful) -> None:
    done = heedful("serve", "--port", "0", "--upstream", "http://127.0.0.1:9/v1", "--header", "X: $NOPE")
    assert (done.code, done.err.count("\n")) == (3, 1)
    assert "the header X needs the environment variable NOPE; set it" in done.err


@pytest.mark.parametrize(
    ("url", "words", "problem"),
    [
        ("http://127.0.0.1:9/v1", ("--threads", "2"), "--threads has no effect on an endpoint"),
        ("", ("--model", "m"), "--model has no effect on the embedded model"),
    ],
)
def test_options_that_the_model_of_a_policy_ignores_are_refused(
    url: str, words: tuple[str, ...], problem: str, bundle: Path, tmp_path: Path, heedful: Heedful
) -> None:
    file, mine = tmp_path / "mine.policy", read_bundle(bundle)
    settings = structs.replace(mine.model.settings, url=url)
    write_bundle(file, replace(mine, model=replace(mine.model, settings=settings)))
    done = heedful("serve", "--port", "0", "--policy", str(file), *words)
    assert (done.code, problem in done.err) == (2, True), done.err


def test_an_upstream_that_cannot_be_reached_stops_the_prior_but_not_a_policy(
    bundle: Path, tmp_path: Path, heedful: Heedful
) -> None:
    nobody = ("--upstream", "http://127.0.0.1:9/v1")
    alone = heedful("serve", "--port", "0", *nobody)
    strict = heedful("serve", "--port", "0", *nobody, "--policy", str(bundle), "--strict")
    with started(tmp_path, *nobody, "--policy", str(bundle)) as server:
        statuses = (server.send("GET", "/readyz").status, server.ask("What is on shelf 3?").status)
    assert (alone.code, strict.code, statuses) == (1, 4, (503, 502)), alone.err + strict.err
