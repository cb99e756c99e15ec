"""The questions asked of a study, at the command line, against a real endpoint on loopback."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Heedful
from tests.faulty import FaultyServer, Play, Request, answers
from tests.protocol.test_workers import rows

STUDY = """
name = "shelves"
[model]
url = "{url}"
model = "m"
[questions]
fit = "fit.jsonl"
test = "test.jsonl"
[sources.notes]
bank = "notes.jsonl"
recall = "bm25"
limit = 2
[fit]
signals = ["mean"]
families = ["gate", "choose"]
firsts = ["none"]
calibrated = false
folds = 3
"""
THINGS = [
    "lamp",
    "rope",
    "glue",
    "nails",
    "tape",
    "chalk",
    "bolts",
    "cloth",
    "wire",
    "paint",
    "beads",
    "soap",
]


def clerk(request: Request) -> Play:
    """Says what a note says of the shelf that is asked about; knows nothing else."""
    said = request.body["messages"][-1]["content"]
    if "JSON" in said:
        return answers('{"difference": "d", "rule": "Look at the shelf before you answer."}')
    shelf = re.search(r"on the (\w+) shelf", said)
    note = shelf and re.search(rf"The {shelf[1]} shelf holds (\w+)", said)
    return answers(note[1], -0.1) if note else answers("dust", -0.9)


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with FaultyServer(clerk) as running:
        yield running


@pytest.fixture(scope="module")
def study_once(server: FaultyServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    for side in ("fit", "test"):
        rows = [
            {"id": f"{side}-{word}", "question": f"What is on the {word} shelf, {side}?", "answer": word}
            for word in THINGS
        ]
        (folder / f"{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    notes = [
        {"id": word, "text": f"The {word} shelf holds {word}, at least 3 of it.", "kind": "fact"}
        for word in THINGS
    ]
    (folder / "notes.jsonl").write_text("".join(json.dumps(note) + "\n" for note in notes))
    (folder / "s.toml").write_text(STUDY.format(url=server.url))
    words = ["study", "run", "s.toml", "--out", "out", "--json"]
    subprocess.run([sys.executable, "-m", "heedful", *words], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def study(study_once: Path, tmp_path: Path) -> Path:
    """A finished study of its own for each test."""
    shutil.copytree(study_once, tmp_path, dirs_exist_ok=True)
    return tmp_path / "out"


def test_counterfactual_writes_a_page_and_says_what_the_content_is_worth(
    heedful: Heedful, study: Path, tmp_path: Path
) -> None:
    edits = tmp_path / "edits.jsonl"
    edits.write_text('{"entry": "lamp", "corrupt": "The lamp shelf holds dust."}\n')
    found = heedful("study", "counterfactual", str(study), "--edits", str(edits), "--json").json
    change = found["arms"]["always"]["change"]
    assert change["fixed-repair"]["value"] == 0
    assert change["fixed-corrupt"]["value"] == pytest.approx(-1 / 12)
    assert found["command"] == "heedful study counterfactual shelves --edits edits.jsonl"
    assert (found["side"], found["tasks"]) == ("fit", 12)
    page = (study / "counterfactual" / "notes-fit.html").read_text()
    assert "<svg" in page
    assert found["command"] in page
    assert "recalls held fixed" in heedful("study", "counterfactual", str(study), "--count", "3").out


def kept(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """The rows of every ledger below a folder, without times."""
    return {str(file.relative_to(folder)): rows(file) for file in folder.rglob("ledger.jsonl")}


@pytest.mark.parametrize("command", ["counterfactual", "controls", "sensitivity"])
def test_an_experiment_with_workers_records_the_rows_of_one_without(
    heedful: Heedful, study: Path, server: FaultyServer, command: str
) -> None:
    alone = study.parent / "alone"
    shutil.copytree(study, alone)
    expected = heedful("study", command, str(alone), "--json").json
    with FaultyServer(clerk) as other:
        workers = f"{server.url},{other.url}*2"
        found = heedful("study", command, str(study), "--workers", workers, "--json").json
        assert other.requests
    assert found == expected
    assert kept(study / command) == kept(alone / command) != {}


def test_credit_controls_and_sensitivity_run_on_the_test_side_and_the_event_log_says_so(
    heedful: Heedful, study: Path
) -> None:
    credit = heedful("study", "credit", str(study), "--side", "test", "--json").json
    assert credit["rows"] == 12
    assert {one["entry"] for one in credit["entries"] if one["carried_helps"]} == set(THINGS)
    controls = heedful("study", "controls", str(study), "--side", "test", "--rate", "0.4", "--json").json
    assert [one["rate"] for one in controls["rates"]] == [0, 0.4]
    assert set(controls["rates"][1]["arms"]) == {"always", "gate", "choose", "heedful"}
    sensitivity = heedful(
        "study", "sensitivity", str(study), "--side", "test", "--size", "0.5", "--noise", "0.2", "--json"
    ).json
    half = sensitivity["points"][0]
    assert (half["axis"], half["entries"]) == ("size", 6)
    assert half["arms"]["always"]["accuracy"] == pytest.approx(0.5)
    events = [json.loads(line)["event"] for line in (study / "events.jsonl").read_text().splitlines()]
    assert events[3:] == [
        "asked the test side again: credit",
        "asked the test side again: controls",
        "asked the test side again: sensitivity",
    ]
    assert heedful("study", "report", str(study), "--json").json["test_openings"] == 1
    assert heedful("study", "verify", str(study)).code == 0


def test_refine_prints_its_rounds_and_keeps_their_page(heedful: Heedful, study: Path, tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text((tmp_path / "s.toml").read_text().replace("shelves", "again"))
    fresh = tmp_path / "fresh"
    assert heedful("study", "record", str(tmp_path / "t.toml"), "--out", str(fresh)).code == 0
    found = heedful("study", "refine", str(fresh), "--json").json
    assert (found["chosen"], found["bank"], len(found["iterations"])) == (0, "notes.jsonl", 1)
    (page,) = (fresh / "refine").glob("notes-*.json")
    assert json.loads(page.read_text()) == found


def test_refine_refuses_a_locked_study(heedful: Heedful, study: Path) -> None:
    done = heedful("study", "refine", str(study))
    assert (done.code, done.err.count("\n")) == (4, 1)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("counterfactual", "--source", "x"), "no bank 'x'"),
        (("counterfactual", "--edits", "/nowhere"), "cannot be read"),
        (("controls", "--kind", "rude"), "no kind of bad entry 'rude'"),
        (("controls", "--rate", "2"), "at least 0 and below 1"),
        (("sensitivity", "--size", "3"), "--size must be above 0"),
    ],
)
def test_mistakes_get_one_sentence_and_no_call_is_made(
    heedful: Heedful, study: Path, server: FaultyServer, words: tuple[str, ...], says: str
) -> None:
    before = len(server.requests)
    command, *rest = words
    done = heedful("study", command, str(study), *rest)
    assert done.code == 2
    assert says in done.err
    assert done.err.count("\n") == 1
    assert len(server.requests) == before


def test_the_test_side_cannot_be_asked_before_it_is_open(
    heedful: Heedful, study: Path, tmp_path: Path
) -> None:
    (tmp_path / "t.toml").write_text((tmp_path / "s.toml").read_text().replace("shelves", "again"))
    fresh = tmp_path / "fresh"
    assert heedful("study", "record", str(tmp_path / "t.toml"), "--out", str(fresh)).code == 0
    done = heedful("study", "credit", str(fresh), "--side", "test")
    assert done.code == 2
    assert "not open yet" in done.err


def test_a_bank_is_built_from_the_pool(
    heedful: Heedful, server: FaultyServer, study: Path, tmp_path: Path, minilm: Path
) -> None:
    pooled = (tmp_path / "s.toml").read_text() + "\n[split]\nfit = 4\npool = 8\n"
    (tmp_path / "p.toml").write_text(pooled.replace("shelves", "pooled"))
    where = ("--out", str(tmp_path / "r.jsonl"))
    heedful("study", "status", str(tmp_path / "p.toml"), "--out", str(tmp_path / "pooled"))
    rules = heedful(
        "bank", "build", str(tmp_path / "pooled"), "--kind", "rules", "--budget", "3", *where, "--json"
    )
    assert rules.json["entries"] == 1
    assert "Look at the shelf" in (tmp_path / "r.jsonl").read_text()
    worked = heedful(
        "bank", "build", str(tmp_path / "pooled"), "--kind", "exemplars", "--size", "3", "--json"
    ).json
    assert worked["entries"] == 3
    assert worked["file"].endswith("exemplars.jsonl")
