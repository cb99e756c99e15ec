"""ask, why, probe and doctor: with the embedded model, for real, and with what a person may do wrong."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path

import pytest

from heedful.models import weights
from heedful.models.embedded import EmbeddedModel
from tests.cli.conftest import Heedful
from tests.faulty import FaultyServer, answers, hangs
from tests.memory.test_database import damage

ask = import_module("heedful.cli.ask")
NOTES = "The support desk of Brightwater opens at 7 am.\nBrightwater ships parcels by tram.\n"


@pytest.fixture
def notes(tmp_path: Path) -> str:
    file = tmp_path / "notes.txt"
    file.write_text(NOTES)
    return str(file)


@pytest.mark.slow
def test_ask_without_an_endpoint_to_reach_fails_with_one_sentence(heedful: Heedful) -> None:
    done = heedful("ask", "hello?", "--url", "http://127.0.0.1:9/v1")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("heedful: connection to http://127.0.0.1:9/v1/chat/completions failed")


@pytest.mark.engine
def test_ask_answers_without_memory_when_the_store_does_not_open(
    heedful: Heedful, engine: EmbeddedModel, tmp_path: Path
) -> None:
    (tmp_path / "bad.db").write_text("nothing like a database " * 100)
    done = heedful("ask", "What is the capital of France?", "--store", str(tmp_path / "bad.db"), "--json")
    assert (done.code, done.json["verdict"]) == (0, "rollback")
    assert "Paris" in done.json["answer"]
    assert "answering without memory" in done.err


@pytest.mark.engine
def test_ask_answers_without_memory_when_recall_has_no_weights(
    heedful: Heedful, engine: EmbeddedModel, notes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heedful("bank", "import", notes)
    smollm = weights.path("smollm2-135m")
    monkeypatch.setenv("HEEDFUL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "0")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    store = str(tmp_path / "heedful" / "heedful.db")
    gguf = str(next(smollm.glob("*.gguf")))
    done = heedful(
        "ask",
        "What is the capital of France?",
        "--store",
        store,
        "--weights",
        gguf,
        "--threshold",
        "9",
        "--json",
    )
    assert (done.code, done.json["reason"]) == (0, "fault")
    assert "survived a fault in source:memory" in done.err


@pytest.mark.engine
def test_ask_prints_its_stable_fields_and_why_explains_them(heedful: Heedful, notes: str) -> None:
    heedful("bank", "import", notes, "--bank", "b", "--kind", "fact")
    words = ("--bank", "b", "--recall", "bm25", "--arm", "gate", "--threshold", "0")
    asked = heedful("ask", "When does the support desk open?", *words, "--json")
    assert asked.code == 0
    assert set(asked.json) == {"answer", "route", "verdict", "reason", "confidence", "calls", "decision"}
    assert (asked.json["route"], asked.json["verdict"], asked.json["calls"]) == ("consult", "accept", 2)
    assert "7" in asked.json["answer"]

    told = heedful("why", asked.json["decision"])
    for part in ("1 answer", "2 sure?", "3 again", "4 verdict", "opens at 7 am", asked.json["answer"]):
        assert part in told.out
    record = heedful("why", "last", "--json").json
    assert record["id"] == asked.json["decision"]
    assert record["candidates"][0]["record"]["recalls"][0]["score"] > 0

    left = heedful("why", asked.json["decision"], "--leave-one-out", "--json").json["leave_one_out"]
    recalls = record["candidates"][0]["record"]["recalls"]
    assert [one["entry"] for one in left] == [recall["entry"] for recall in recalls]
    assert left[0]["flipped"], "without the note the model cannot know"


@pytest.mark.engine
def test_ask_with_dense_recall_keeps_vectors_and_never_needs_no_memory(
    heedful: Heedful, notes: str, minilm: Path
) -> None:
    heedful("bank", "import", notes, "--bank", "b", "--kind", "fact")
    asked = heedful(
        "ask", "When does the support desk of Brightwater open?", "--bank", "b", "--arm", "always", "--json"
    )
    assert "7" in asked.json["answer"]
    kept = heedful("ask", "What is the capital of France?", "--bank", "b", "--arm", "never")
    assert kept.code == 0
    assert "keep (never" in kept.out


@pytest.mark.engine
def test_probe_tells_what_the_embedded_engine_gives(heedful: Heedful, engine: EmbeddedModel) -> None:
    found = heedful("probe", "embedded", "--json").json
    assert (found["logprobs"], found["deterministic_text"], found["json_schema"]) == ("raw", True, True)
    assert found["top_logprobs"] == 20
    assert found["cached_tokens"] > 100
    assert "margin" in found["signals"]


@pytest.mark.engine
def test_doctor_finds_everything_in_place(heedful: Heedful, engine: EmbeddedModel, minilm: Path) -> None:
    done = heedful("doctor", "--json")
    assert (done.code, done.json["ok"]) == (0, True)
    assert {check["name"] for check in done.json["checks"]} >= {"python", "packages", "weights", "store"}


def test_doctor_names_a_store_that_is_broken(heedful: Heedful, tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_text("nothing like a database " * 100)
    done = heedful("doctor", "--store", str(tmp_path / "bad.db"), "--json")
    assert done.code == 1
    assert [check["name"] for check in done.json["checks"] if not check["ok"]] == ["store"]


def test_doctor_names_a_store_that_can_only_be_read(
    heedful: Heedful, notes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "s.db"
    heedful("bank", "import", notes, "--store", str(store))
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write every file
    done = heedful("doctor", "--store", str(store), "--json")
    [found] = [check for check in done.json["checks"] if check["name"] == "store"]
    assert (done.code, found["ok"]) == (1, False)
    assert "cannot be written, so no decision would be recorded: make it writable" in found["detail"]


@pytest.mark.parametrize(
    "words", [("decisions", "stats"), ("why",), ("bank", "ls"), ("purge", "--keep", "30d"), ("govern",)]
)
def test_a_command_that_adds_nothing_creates_no_store(
    heedful: Heedful, home: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    typo = tmp_path / "typo.db"
    done = heedful(*words, "--store", str(typo))
    assert (done.code, done.out) == (2, "")
    assert f"there is no store {typo}" in done.err
    heedful(*words)
    assert not typo.exists()
    assert list(home.rglob("*.db")) == []
    assert "does not exist yet" in heedful("doctor").out


def test_weights_list_names_every_model_with_its_sha256(heedful: Heedful) -> None:
    listed = heedful("weights", "list", "--json").json["weights"]
    assert {"smollm2-135m", "all-minilm-l6-v2"} <= {item["name"] for item in listed}
    assert all(len(digest) == 64 for item in listed for digest in item["sha256"].values())


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer(lambda request: answers("Paris", -2.0)) as running:
        yield running


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("",), "the question is empty"),
        ((" ",), "the question is empty"),
        (("q", "--threshold", "nan"), "threshold is nan, which is not a number"),
        (("q", "--margin", "nan"), "each must be a number"),
        (("q", "--similarity", "nan"), "threshold of recall is nan"),
        (("q", "--bank", ""), "a bank cannot be named ''"),
        (("q", "--recall", "bm25", "--similarity", "0.5"), "--similarity has no effect with --recall bm25"),
        (("q", "--weights", "smollm2-135m"), "--weights has no effect on an endpoint"),
        (("q", "--threads", "2"), "--threads has no effect on an endpoint"),
        (("q", "--arm", "gate", "--margin", "0.1"), "--margin has no effect with --arm gate"),
        (("q", "--arm", "always", "--threshold", "0"), "--threshold has no effect with --arm always"),
        (("q", "--arm", "never", "--placement", "before"), "--placement has no effect with --arm never"),
        (("q", "--arm", "retry", "--limit", "2"), "--limit has no effect with --arm retry"),
        (("q", "--combine", "dual"), "--combine has no effect with one bank"),
        (("q", "--similarity", "7"), "--similarity is 7, but a cosine similarity is between -1 and 1"),
        (("q", "--bank", "a", "--bank", "a"), "--bank a is given twice"),
        (("q", "--arm", "never", "--signal", "min"), "--signal has no effect with --arm never"),
    ],
)
def test_ask_refuses_in_one_sentence_what_makes_no_sense(
    heedful: Heedful, server: FaultyServer, words: tuple[str, ...], complaint: str
) -> None:
    done = heedful("ask", *words, "--url", server.url)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("heedful: ")
    assert complaint in done.err
    assert len(done.err.splitlines()) == 1
    assert server.requests == []


def test_an_answer_is_printed_exactly_as_the_model_gave_it(heedful: Heedful) -> None:
    said = f"[b]ok[/b] :smile: {'word ' * 40}end"
    with FaultyServer(lambda request: answers(said, -0.1)) as server:
        asked = heedful("ask", "What is :dog:?", "--url", server.url, "--arm", "never")
    assert asked.out.splitlines()[0] == said
    for told in (heedful("why"), heedful("decisions", "show")):
        assert f"→ answer   {said}" in told.out.splitlines()
        assert "question   What is :dog:?" in told.out
    assert ":dog:" in heedful("decisions", "ls").out


@pytest.mark.parametrize("option", [("--model", "m"), ("--timeout", "9"), ("--no-logprobs",)])
def test_options_of_an_endpoint_need_one(heedful: Heedful, option: tuple[str, ...]) -> None:
    done = heedful("ask", "q", *option)
    assert done.code == 2
    assert "has no effect on the embedded model; it needs --url" in done.err


def test_an_endpoint_that_hangs_is_given_up_after_the_timeout(heedful: Heedful) -> None:
    with FaultyServer(lambda request: hangs) as server:
        done = heedful("ask", "q", "--url", server.url, "--timeout", "0.1")
    assert done.code == 1
    assert "did not answer within 0.1 s" in done.err


def test_ask_answers_without_memory_when_the_database_is_damaged(
    heedful: Heedful, server: FaultyServer, notes: str, tmp_path: Path
) -> None:
    store = tmp_path / "s.db"
    heedful("bank", "import", notes, "--bank", "b", "--store", str(store))
    damage(store)
    words = ("--bank", "b", "--recall", "bm25", "--store", str(store), "--url", server.url, "--json")
    done = heedful("ask", "When does the support desk open?", *words)
    assert (done.code, done.json["answer"]) == (0, "Paris")
    assert "answering without memory" in done.err
    assert "restore it from a backup" in done.err


def test_ask_answers_while_another_process_holds_the_store(
    heedful: Heedful, server: FaultyServer, notes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.cli.asking.LOCKED_SECONDS", 0.0)
    store = tmp_path / "s.db"
    heedful("bank", "import", notes, "--bank", "b", "--store", str(store))
    with closing(sqlite3.connect(store, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        words = ("--bank", "b", "--recall", "bm25", "--arm", "gate", "--store", str(store))
        done = heedful("ask", "When does the support desk open?", *words, "--url", server.url)
    assert done.code == 0
    assert "survived a fault in journal: StoreError" in done.err
    assert "another process is using it" in done.err
    assert "→ accept (gate), 2 calls; not recorded" in done.out, "memory is read all the same"


def test_doctor_asks_the_model_that_it_is_given(heedful: Heedful, server: FaultyServer) -> None:
    done = heedful("doctor", "--url", server.url, "--model", "mine", "--json")
    assert server.requests[-1].body["model"] == "mine"
    assert [check["ok"] for check in done.json["checks"] if check["name"] == "endpoint"] == [True]
    refused = heedful("doctor", "--model", "mine")
    assert (refused.code, "--model has no effect without --url" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("govern", "--data", "d"), "--data has no effect without --study and --probe"),
        (("govern", "--source", "rules"), "--source has no effect without --study"),
        (("bank", "evidence", "--source", "rules"), "--source has no effect without --study"),
        (("why", "--threads", "2"), "--threads has no effect without --leave-one-out"),
        (("why", "--url", "http://127.0.0.1:9/v1"), "--url has no effect without --leave-one-out"),
        (("probe", "http://127.0.0.1:9/v1", "--weights", "x"), "--weights has no effect on an endpoint"),
        (("probe", "embedded", "--model", "x"), "--model has no effect on the embedded model"),
        (("bank", "build", "s.toml", "--kind", "worked", "--size", "5"), "--size has no effect"),
        (("bank", "build", "s.toml", "--kind", "exemplars", "--budget", "5"), "--budget has no effect"),
        (("study", "refine", "s.toml", "--writer-url", "u"), "--writer-url has no effect without --replace"),
        (("study", "counterfactual", "s", "--edits", "e", "--count", "3"), "--count has no effect"),
        (("bank", "add", "Sing.", "--bank", ""), "a bank cannot be named ''"),
        (("bank", "add", "Sing.", "--bank", "a\nb"), "a bank cannot be named"),
    ],
)
def test_an_option_without_effect_is_refused_by_every_command(
    heedful: Heedful, words: tuple[str, ...], complaint: str
) -> None:
    done = heedful(*words)
    assert (done.code, done.out) == (2, "")
    assert complaint in done.err
