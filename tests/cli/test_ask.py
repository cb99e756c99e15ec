"""ask, why, probe and doctor with the embedded model, for real."""

import os
from pathlib import Path

import pytest

from heedful.models import weights
from heedful.models.embedded import EmbeddedModel
from tests.cli.conftest import Heedful

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


def test_weights_list_names_every_model_with_its_sha256(heedful: Heedful) -> None:
    listed = heedful("weights", "list", "--json").json["weights"]
    assert {"smollm2-135m", "all-minilm-l6-v2"} <= {item["name"] for item in listed}
    assert all(len(digest) == 64 for item in listed for digest in item["sha256"].values())
