"""`heedful study` against a real endpoint on loopback, and what a person's mistake gets."""

import json
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from heedful.protocol.ledger import Ledger
from tests.cli.conftest import Done, Heedful
from tests.faulty import FaultyServer, Play, Request, answers, answers_without_logprobs

STUDY = """
name = "desk"
[model]
url = "{url}"
model = "m"
[questions]
fit = "fit.jsonl"
test = "test.jsonl"
[sources.notes]
bank = "notes.txt"
recall = "bm25"
[fit]
signals = ["mean"]
families = ["gate"]
calibrated = false
"""


def desk(request: Request) -> Play:
    """Knows shelf 1 only with the note."""
    said = json.dumps(request.body["messages"])
    return answers("nails" if "holds nails" in said else "rope", -0.2 if "holds nails" in said else -0.9)


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer(desk) as running:
        yield running


@pytest.fixture
def study(server: FaultyServer, tmp_path: Path) -> Path:
    for side, words in (("fit", "in the shed"), ("test", "in the hall")):
        rows = [
            {"id": f"{side}{n}", "question": f"What is on shelf {n} {words}?", "answer": "nails"}
            for n in range(12)
        ]
        (tmp_path / f"{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "notes.txt").write_text("Every shelf holds nails.\n")
    file = tmp_path / "desk.toml"
    file.write_text(STUDY.format(url=server.url))
    return file


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def test_a_packed_study_is_reported_verified_and_continued_as_before(
    heedful: Heedful, study: Path, out: Path
) -> None:
    whole = heedful("study", "run", str(study), "--out", str(out), "--json").json
    done = heedful("study", "pack", str(out), "--json")
    assert (done.code, done.json["files"]) == (0, [str(out / name) for name in ("ledger.jsonl", "fit.json")])
    assert done.json["after"] < done.json["before"] / 2
    assert not (out / "ledger.jsonl").exists()
    assert not (out / "fit.json").exists()
    assert heedful("study", "status", str(out), "--json").json["fitted"]
    assert heedful("study", "report", str(out), "--json").json == whole
    assert heedful("study", "verify", str(out)).code == 0
    assert "0 files packed or dropped" in heedful("study", "pack", str(out)).out
    assert heedful("study", "run", str(out), "--json").json == whole
    wrong = heedful("study", "pack", str(study))
    assert (wrong.code, "is not a folder" in wrong.err) == (2, True)


def test_a_study_runs_with_several_endpoints_and_verifies_with_its_own(
    heedful: Heedful, server: FaultyServer, study: Path, out: Path
) -> None:
    with FaultyServer(desk) as other:
        workers = f"{server.url},{other.url}*2"
        done = heedful("study", "run", str(study), "--out", str(out), "--workers", workers, "--json")
        assert done.code == 0, done.err
        assert len(other.requests) > 10
    assert done.json["arms"]["heedful"]["accuracy"] == 1
    assert heedful("study", "verify", str(out)).code == 0
    status = heedful("study", "status", str(out), "--json").json
    assert (status["workers"], status["passes_per_minute"]) == (None, None)
    wrong = heedful("study", "record", str(study), "--out", str(out), "--workers", "3")
    assert (wrong.code, "set [model] slots" in wrong.err) == (2, True)


def test_run_goes_from_the_file_to_the_report_and_every_step_answers_json(
    heedful: Heedful, study: Path, out: Path
) -> None:
    done = heedful("study", "run", str(study), "--out", str(out), "--json")
    assert done.code == 0, done.err
    assert [line for line in done.err.splitlines() if line.startswith("recording fit")] == [
        "recording fit: 0 of 24 passes, 0 model calls",
        "recording fit: 24 of 24 passes, 24 model calls",
    ]
    found = done.json
    assert found["arms"]["baseline"]["accuracy"] == 0
    assert found["arms"]["heedful"]["accuracy"] == 1
    assert found["delta"]["value"] == 1
    written = re.sub(r"<[^>]+>", "|", (out / "report.html").read_text())
    assert "recall of notes||bm25; at most 3 entries, placement auto|" in written
    assert found["test_openings"] == 1
    assert heedful("study", "report", str(out), "--json").json == found
    status = heedful("study", "status", str(out), "--json").json
    assert (status["locked"], status["seconds_left"]) == (True, 0)
    assert heedful("study", "verify", str(out), "--json").json["moved"] == []
    assert heedful("study", "fit", str(out), "--json").json["rows"] == 12
    assert found["crossfit"] is None
    folded = heedful("study", "crossfit", str(out), "--folds", "3", "--json")
    assert (folded.json["n"], folded.json["accuracy"], folded.json["hurts"]) == (24, 1, 0)
    assert "fold 3 of 3" in folded.err
    assert "cross-fitted: the study's procedure" in heedful("study", "crossfit", str(out)).out
    after = heedful("study", "report", str(out), "--json").json
    assert after["crossfit"]["delta"]["value"] == 1
    assert after["arms"] == found["arms"], "the locked test stays what it was"


def test_crossfit_refuses_a_study_whose_test_side_is_closed(heedful: Heedful, study: Path, out: Path) -> None:
    heedful("study", "record", str(study), "--out", str(out))
    one_sentence(heedful("study", "crossfit", str(out)), 2, "heedful study lock")
    heedful("study", "fit", str(out))
    heedful("study", "lock", str(out))
    one_sentence(heedful("study", "crossfit", str(out)), 2, "heedful study test")
    assert not (out / "crossfit.json").exists()


def one_sentence(done: Done, code: int, *says: str) -> None:
    assert done.code == code, done.err
    assert "Traceback" not in done.err
    complaint = done.err.strip().splitlines()[-1]
    for words in says:
        assert words in complaint


def test_a_wrong_key_is_named(heedful: Heedful, study: Path, out: Path) -> None:
    study.write_text(study.read_text().replace("families", "famlies"))
    one_sentence(heedful("study", "run", str(study), "--out", str(out)), 2, "famlies")


def test_data_that_are_not_there_and_data_that_are_not_the_published_ones(
    heedful: Heedful, tmp_path: Path
) -> None:
    file = tmp_path / "s.toml"
    file.write_text('name = "s"\nbenchmark = "svamp"\n[sources.retry]\nkind = "retry"\n')
    command = ("study", "record", str(file), "--out", str(tmp_path / "out"))
    one_sentence(heedful(*command), 3, "HEEDFUL_DATA", "--data")
    one_sentence(heedful(*command, "--data", str(tmp_path)), 3, "train.jsonl")
    (tmp_path / "svamp").mkdir()
    (tmp_path / "svamp" / "train.jsonl").write_text("{}\n")
    one_sentence(heedful(*command, "--data", str(tmp_path)), 2, "sha256", "5478cc5f")


def test_a_test_question_inside_a_bank_is_refused(heedful: Heedful, study: Path, out: Path) -> None:
    (study.parent / "notes.txt").write_text("what is on shelf 3 in the HALL\n")
    one_sentence(heedful("study", "record", str(study), "--out", str(out)), 4, "test side")


def test_an_endpoint_without_logprobs_records_nothing(heedful: Heedful, study: Path, out: Path) -> None:
    with FaultyServer(lambda request: answers_without_logprobs("nails")) as silent:
        study.write_text(STUDY.format(url=silent.url))
        done = heedful("study", "record", str(study), "--out", str(out))
    one_sentence(done, 1, "nothing was recorded", "log-probs")
    assert not (out / "ledger.jsonl").exists()


@contextmanager
def small_disk(size: int) -> Iterator[None]:
    """No file may grow beyond `size` bytes, which a writer meets like a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files as POSIX does")
def test_a_full_disk_stops_the_recording_and_nothing_is_lost(
    heedful: Heedful, study: Path, server: FaultyServer, out: Path
) -> None:
    code = "import sys; from heedful.cli.main import run; sys.argv[0] = 'heedful'; run()"
    command = [sys.executable, "-c", code, "study", "record", str(study), "--out", str(out)]
    with small_disk(8000):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "recorded rows are kept" in done.stderr.strip().splitlines()[-1]
    kept = dict(Ledger(out / "ledger.jsonl").passes)
    assert kept
    before = len(server.requests)
    assert heedful("study", "record", str(study), "--out", str(out)).code == 0
    whole = Ledger(out / "ledger.jsonl").passes
    assert len(whole) == 24
    assert {key: whole[key] for key in kept} == kept
    assert len(server.requests) - before == 1 + 24 - len(kept)


def test_no_weights_are_downloaded_where_nothing_is_decoded(
    heedful: Heedful, study: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEEDFUL_HOME", str(tmp_path / "no weights"))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9")
    heedful("study", "run", str(study), "--out", str(out))
    toml = (out / "study.toml").read_text().partition("[questions]")[2]
    embedded = f'name = "desk"\n[model]\nweights = "smollm2-135m"\n[questions]{toml}'
    (out / "study.toml").write_text(embedded.replace('recall = "bm25"', 'recall = "dense"'))
    for command in ("status", "fit", "report"):
        done = heedful("study", command, str(out))
        assert (done.code, "downloading" in done.err) == (0, False), done.err
    assert "downloading" not in heedful("study", "verify", str(out)).err


def test_what_moved_after_the_lock_is_named_and_the_test_side_stays_closed(
    heedful: Heedful, study: Path, out: Path
) -> None:
    for step in ("record", "fit", "lock"):
        assert heedful("study", step, str(study), "--out", str(out)).code == 0
    (out / "notes.txt").write_text("Every shelf holds glue.\n")
    one_sentence(heedful("study", "test", str(out)), 4, "bank:notes")
    one_sentence(heedful("study", "verify", str(out)), 4, "bank:notes")
    assert not any(row.side == "test" for row in Ledger(out / "ledger.jsonl").passes.values())


def test_another_model_behind_the_same_name_breaks_the_lock(
    heedful: Heedful, study: Path, server: FaultyServer, out: Path
) -> None:
    for step in ("record", "fit", "lock"):
        assert heedful("study", step, str(study), "--out", str(out)).code == 0
    server.script = lambda request: answers("Salt." if "the sea" in request.question else "nails")
    one_sentence(heedful("study", "test", str(out)), 4, "the endpoint's replies")


@pytest.mark.parametrize(
    ("step", "says"),
    [("fit", "heedful study record"), ("lock", "heedful study fit"), ("test", "heedful study lock")],
)
def test_a_step_too_early_says_what_to_run_first(
    heedful: Heedful, study: Path, out: Path, step: str, says: str
) -> None:
    one_sentence(heedful("study", step, str(study), "--out", str(out)), 2, says)


def test_a_folder_that_is_no_study(heedful: Heedful, tmp_path: Path) -> None:
    one_sentence(heedful("study", "report", str(tmp_path)), 2, "study.toml")
