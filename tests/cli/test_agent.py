"""`heedful agent` in a small shop, against a real endpoint on loopback."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Heedful
from tests.environments.making import write_products
from tests.faulty import FaultyServer, Play, Request, answers, fails

STUDY = """
name = "shop"
environment = "webshop"
bank = "hints.jsonl"
[model]
url = "{url}"
model = "m"
slots = 1
[episodes]
fit = 4
test = 5
[recall]
method = "bm25"
limit = 1
[act]
steps = 6
[fit]
quantiles = [0.9]
budgets = [2]
cooldowns = [0]
"""


def customer(request: Request) -> Play:
    """Searches, opens the first item and buys it at once; with notes it sets an option first."""
    messages = request.body["messages"]
    last = messages[-1]["content"]
    goal = last.partition("\n")[0]
    offered = re.findall(r"^- (.*)$", last.partition("Notes from")[0], re.MULTILINE)
    if "search[...]" in offered:
        return answers(f"search[{' '.join(goal.split()[-20:])}]", -0.1)
    items = [action for action in offered if re.fullmatch(r"click\[b\d+\]", action)]
    if items:
        return answers(items[0], -0.2)
    wanted = re.findall(r"(?:size|color): ([a-z ]+),", goal)
    left = [value for value in wanted if f"{value} (selected)" not in last]
    return (
        answers(f"click[{left[0]}]", -0.3)
        if "Notes from" in last and left
        else answers("click[buy now]", -0.8)
    )


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer(customer) as running:
        yield running


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_products(tmp_path_factory.mktemp("data"), count=500))


@pytest.fixture
def study(server: FaultyServer, data: str, heedful: Heedful, tmp_path: Path) -> str:
    bank = tmp_path / "hints.jsonl"
    assert heedful("agent", "hints", "webshop", "--data", data, "--limit", "30", "--out", str(bank)).code == 0
    file = tmp_path / "shop.toml"
    file.write_text(STUDY.format(url=server.url))
    return str(file)


def test_an_episode_is_printed_step_by_step(
    heedful: Heedful, server: FaultyServer, study: str, data: str
) -> None:
    bank = str(Path(study).parent / "hints.jsonl")
    words = ("agent", "run", "webshop", "--goal", "12", "--data", data, "--url", server.url, "--bank", bank)
    more = ("--recall", "bm25", "--threshold", "-0.5", "--steps", "6")
    done = heedful(*words, *more)
    assert done.code == 0, done.err
    assert "WebShop [SEP] Search" in done.out
    assert re.search(r"first +click\[buy now\]  \(confidence -0.800: consult, unsure\)", done.out)
    assert "Next action: " in done.out
    assert "verdict accept (margin met)" in done.out
    assert "ended: done" in done.out
    assert heedful("bank", "import", bank, "--bank", "hints").code == 0
    played = heedful(*words[:-1], "hints", *more, "--branch", "--json").json
    assert {"goal", "score", "calls", "end", "error", "steps", "saved", "branches"} == set(played)
    assert played["branches"][0]["second_score"] >= played["branches"][0]["first_score"]
    assert played["steps"][-1]["action"] == "click[buy now]"


@pytest.mark.parametrize(("placement", "shown"), [("after", True), ("advice", False)])
def test_hints_are_shown_with_their_situation_or_as_advice(
    heedful: Heedful, server: FaultyServer, study: str, data: str, placement: str, shown: bool
) -> None:
    bank = Path(study).parent / "hints.jsonl"
    words = ("agent", "run", "webshop", "--goal", "12", "--data", data, "--url", server.url)
    server.requests.clear()
    done = heedful(
        *words, "--bank", str(bank), "--recall", "bm25", "--arm", "always", "--placement", placement
    )
    assert done.code == 0, done.err
    asked = [request.body["messages"][-1]["content"] for request in server.requests]
    noted = [text.partition("Notes from similar situations:")[2] for text in asked]
    hints = [json.loads(line) for line in bank.read_text().splitlines()]
    assert any("Next action: " in note for note in noted)
    assert any(hint["text"].splitlines()[0] in note for hint in hints for note in noted) == shown


def test_a_study_is_run_resumed_and_reported(heedful: Heedful, study: str, data: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    done = heedful("agent", "study", study, "--data", data, "--out", str(folder), "--json")
    assert done.code == 0, done.err
    summary = done.json
    assert (summary["environment"], summary["episodes"]) == ("webshop", 5)
    assert summary["delta"]["score"]["value"] > 0
    assert "saved by the cache" in done.err
    assert heedful("agent", "report", str(folder), "--json").json == summary
    assert "Here the episodes part" in (folder / "traces.html").read_text()
    again = heedful("agent", "study", str(folder), "--data", data)
    assert again.code == 0
    assert "continuing with the locked study" in again.err
    assert summary["main"] == "always"  # the scripted model copies every hint
    assert "Memory in every prompt scores" in again.out


def test_a_locked_study_acts_again_and_its_branches_are_evidence(
    heedful: Heedful, study: str, data: str, tmp_path: Path
) -> None:
    folder = str(tmp_path / "out")
    summary = heedful("agent", "study", study, "--data", data, "--out", folder, "--json").json
    acts = ("agent", "run", "webshop", "--study", folder, "--data", data)
    record = heedful(*acts, "--goal", "3", "--json")
    assert (record.code, record.err) == (0, "")
    assert (record.json["end"], record.json["calls"] > 0) == ("done", True)
    bank = Path(folder, "hints.jsonl")
    rows = bank.read_text().splitlines(keepends=True)
    bank.write_text("".join(rows[:-1]))
    assert f"changed since {folder} was locked: bank" in heedful(*acts).err
    bank.write_text("".join(rows))
    refused = heedful(*acts, "--threshold", "-1")
    assert (refused.code, "--threshold has no effect with --study" in refused.err) == (2, True)
    other = heedful("agent", "run", "scienceworld", "--study", folder, "--data", data)
    assert (other.code, "is a study of webshop" in other.err) == (2, True)
    assert heedful("bank", "import", str(bank), "--bank", "hints").code == 0
    review = heedful("govern", "--study", folder, "--bank", "hints", "--json")
    assert (review.code, review.json["rule"]) == (0, "sign"), review.err
    assert summary["arms"]["always"]["helps"] > 0
    notes = tmp_path / "notes.txt"
    notes.write_text("Mugs are on the second shelf.")
    assert heedful("bank", "import", str(notes), "--bank", "other").code == 0
    again = heedful("govern", "--study", folder, "--bank", "hints", "--leave-groups-out")
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert "is a study of agents" in again.err
    foreign = heedful("govern", "--study", folder, "--bank", "other")
    assert (foreign.code, "has none of the entries" in foreign.err) == (2, True)


def test_a_locked_study_whose_bank_changed_is_refused(
    heedful: Heedful, study: str, data: str, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    assert heedful("agent", "study", study, "--data", data, "--out", str(folder)).code == 0
    bank = folder / "hints.jsonl"
    bank.write_text("".join(bank.read_text().splitlines(keepends=True)[:-1]))
    done = heedful("agent", "study", str(folder), "--data", data)
    assert (done.code, "bank changed since" in done.err) == (4, True)
    other = heedful("agent", "study", study, "--data", data, "--out", str(folder))
    assert (other.code, "holds a locked study with another hints.jsonl" in other.err) == (2, True), other.err
    words = ("agent", "run", "webshop", "--data", data, "--bank", str(bank), "--store", "mine.db")
    idle = heedful(*words)
    assert (idle.code, "--store has no effect with --bank FILE" in idle.err) == (2, True), idle.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("run", "chess"), 2, "unknown environment 'chess'"),
        (("run", "webshop"), 3, "set HEEDFUL_DATA or use --data FOLDER"),
        (("run", "webshop", "--option", "x"), 2, "--option 'x' is not NAME=VALUE"),
        (("run", "webshop", "--arm", "magic"), 2, "unknown arm 'magic'"),
        (("run", "webshop", "--arm", "never", "--budget", "3"), 2, "--budget has no effect with --arm never"),
        (
            ("run", "webshop", "--arm", "always", "--margin", "1"),
            2,
            "--margin has no effect with --arm always",
        ),
        (("run", "webshop", "--arm", "retry", "--bank", "x"), 2, "--bank has no effect with --arm retry"),
        (("run", "webshop", "--recall", "bm25", "--similarity", "0.9"), 2, "--similarity has no effect"),
        (("run", "webshop", "--similarity", "7"), 2, "--similarity"),
        (("run", "webshop", "--arm", "never", "--placement", "advice"), 2, "--placement has no effect"),
        (("run", "webshop", "--bank", "none.jsonl"), 2, "there is no file none.jsonl"),
        (("run", "webshop", "--model", "m"), 2, "--model has no effect on the embedded model"),
        (("hints", "webshop", "--steps", "3"), 2, "--steps has no effect without --failures"),
        (("hints", "webshop", "--failures", "1", "--model", "m"), 2, "--model has no effect"),
        (("hints", "webshop", "--option", "x=1"), 2, "the options of the environment webshop are wrong"),
        (("study", "nothing.toml"), 2, "cannot be read"),
        (("report", "."), 2, "is not the folder of an agent study"),
    ],
)
def test_a_mistake_gets_a_sentence(heedful: Heedful, words: tuple[str, ...], code: int, said: str) -> None:
    done = heedful("agent", *words)
    assert (done.code, said in done.err) == (code, True), done.err


def test_a_run_without_entries_or_log_probs_says_that_memory_changes_nothing(
    heedful: Heedful, server: FaultyServer, data: str
) -> None:
    done = heedful("agent", "run", "webshop", "--data", data, "--url", server.url, "--steps", "1")
    assert "bank 'default' has no entries" in done.err


def test_every_failed_fit_episode_is_told_with_its_cause(
    heedful: Heedful, study: str, data: str, tmp_path: Path
) -> None:
    with FaultyServer(lambda request: fails(500, "broken")) as broken:
        file = Path(study)
        file.write_text(re.sub(r'url = "[^"]*"', f'url = "{broken.url}"', file.read_text()))
        done = heedful("agent", "study", study, "--data", data, "--out", str(tmp_path / "out"))
    assert done.code == 1
    assert "every fit episode failed, the last one with" in done.err


def test_missing_java_ends_with_the_line_that_installs_it(
    heedful: Heedful, server: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    done = heedful("agent", "run", "textworld_express", "--goal", "0", "--arm", "never", "--url", server.url)
    assert (done.code, "default-jre-headless" in done.err) == (3, True), done.err


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('environment = "webshop"', 'environment = "chess"', "unknown environment 'chess'"),
        ("fit = 4", "fit = 4000", "wants 4000 fit episodes"),
        ('method = "bm25"', 'method = "magic"', "method is 'magic'"),
        ("steps = 6", "steps = 0", "is wrong"),
        ('bank = "hints.jsonl"', 'bank = "../hints.jsonl"', "is not next to the study file"),
        ('bank = "hints.jsonl"', 'bank = "none.jsonl"', "does not exist"),
        ('name = "shop"', "name = ", "is not TOML"),
    ],
)
def test_a_wrong_study_file_gets_a_sentence(
    heedful: Heedful, study: str, data: str, tmp_path: Path, before: str, after: str, said: str
) -> None:
    file = Path(study)
    file.write_text(file.read_text().replace(before, after, 1))
    done = heedful("agent", "study", study, "--data", data, "--out", str(tmp_path / "out"))
    assert done.code in (2, 3)
    assert said in done.err


def test_failures_of_the_model_become_entries(
    heedful: Heedful, server: FaultyServer, data: str, tmp_path: Path
) -> None:
    out = tmp_path / "more.jsonl"
    words = (
        "agent",
        "hints",
        "webshop",
        "--data",
        data,
        "--limit",
        "6",
        "--failures",
        "3",
        "--out",
        str(out),
    )
    done = heedful(*words, "--url", server.url, "--json")
    assert done.code == 0, done.err
    assert (done.json["entries"], done.json["failures"] > 0) == (6, True)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert sum(row["source"].startswith("failure:") for row in rows) == done.json["failures"]
    more = ("--failed", str(tmp_path / "more.failed.jsonl"), "--url", server.url, "--json")
    assert heedful(*words, *more).json["failures"] == done.json["failures"]
    again, plain = tmp_path / "again.jsonl", ("agent", "hints", "webshop", "--data", data, "--limit", "6")
    rebuilt = heedful(*plain, "--failed", str(tmp_path / "more.failed.jsonl"), "--out", str(again), "--json")
    assert (rebuilt.code, again.read_text()) == (0, out.read_text())


def test_an_episode_whose_endpoint_fails_ends_with_the_reason(heedful: Heedful, data: str) -> None:
    with FaultyServer(lambda request: fails(400, "no")) as server:
        done = heedful("agent", "run", "webshop", "--arm", "never", "--data", data, "--url", server.url)
    assert (done.code, "ended: context" in done.out) == (1, True)
