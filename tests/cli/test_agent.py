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
    goal, last = messages[0]["content"], messages[-1]["content"]
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
    assert "What worked" in done.out
    assert "verdict accept (margin met)" in done.out
    assert "ended: done" in done.out
    assert heedful("bank", "import", bank, "--bank", "hints").code == 0
    played = heedful(*words[:-1], "hints", *more, "--branch", "--json").json
    assert {"goal", "score", "calls", "end", "error", "steps", "saved", "branches"} == set(played)
    assert played["branches"][0]["second_score"] >= played["branches"][0]["first_score"]
    assert played["steps"][-1]["action"] == "click[buy now]"


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
    assert "The threshold policy scores" in again.out or "The value policy scores" in again.out


def test_a_locked_study_whose_bank_changed_is_refused(
    heedful: Heedful, study: str, data: str, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    assert heedful("agent", "study", study, "--data", data, "--out", str(folder)).code == 0
    bank = folder / "hints.jsonl"
    bank.write_text("".join(bank.read_text().splitlines(keepends=True)[:-1]))
    done = heedful("agent", "study", str(folder), "--data", data)
    assert (done.code, "bank changed since" in done.err) == (4, True)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("run", "chess"), 2, "unknown environment 'chess'"),
        (("run", "webshop"), 3, "set HEEDFUL_DATA or use --data FOLDER"),
        (("run", "webshop", "--option", "x"), 2, "--option 'x' is not NAME=VALUE"),
        (("run", "webshop", "--arm", "magic"), 2, "unknown arm 'magic'"),
        (("hints", "webshop", "--option", "x=1"), 2, "the options of the environment webshop are wrong"),
        (("study", "nothing.toml"), 2, "cannot be read"),
        (("report", "."), 2, "is not the folder of an agent study"),
    ],
)
def test_a_mistake_gets_a_sentence(heedful: Heedful, words: tuple[str, ...], code: int, said: str) -> None:
    done = heedful("agent", *words)
    assert (done.code, said in done.err) == (code, True), done.err


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


def test_an_episode_whose_endpoint_fails_ends_with_the_reason(heedful: Heedful, data: str) -> None:
    with FaultyServer(lambda request: fails(400, "no")) as server:
        done = heedful("agent", "run", "webshop", "--arm", "never", "--data", data, "--url", server.url)
    assert (done.code, "ended: context" in done.out) == (0, True)
