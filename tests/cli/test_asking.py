"""`heedful ask` with a locked policy, several banks and scopes, against an endpoint on loopback."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Heedful
from tests.cli.test_study import STUDY
from tests.faulty import FaultyServer, Play, Request, answers

QUESTIONS = [f"What is on shelf {n} in the hall?" for n in range(6)]


def shelves(request: Request) -> Play:
    """Knows what is on a shelf only from a note."""
    said = json.dumps(request.body["messages"])
    known = next((item for item in ("nails", "paint") if f"holds {item}" in said), "")
    return answers(known or "rope", -0.2 if known else -0.9)


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer(shelves) as running:
        yield running


@pytest.fixture
def folder(server: FaultyServer, tmp_path: Path, heedful: Heedful) -> str:
    """The folder of a tested study."""
    for side, place in (("fit", "shed"), ("test", "hall")):
        rows = [
            {"id": f"{side}{n}", "question": f"What is on shelf {n} in the {place}?", "answer": "nails"}
            for n in range(6)
        ]
        (tmp_path / f"{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "notes.txt").write_text("Every shelf holds nails.\n")
    (tmp_path / "desk.toml").write_text(STUDY.format(url=server.url))
    out = str(tmp_path / "desk")
    done = heedful("study", "run", str(tmp_path / "desk.toml"), "--out", out)
    assert done.code == 0, done.err
    return out


def test_a_study_and_its_bundle_answer_as_the_test_side_was_answered(
    heedful: Heedful, folder: str, tmp_path: Path
) -> None:
    bundle = str(tmp_path / "mine.policy")
    exported = heedful("study", "export", folder, "--to", bundle, "--json").json
    assert (exported["study"], exported["entries"]) == ("desk", {"notes": 1})
    arm = json.loads((Path(folder) / "report.json").read_text())["arms"]["heedful"]
    for words in (("--study", folder), ("--policy", bundle, "--strict")):
        asked = [heedful("ask", question, *words, "--json") for question in QUESTIONS]
        assert [done.err for done in asked] == [""] * 6
        assert [done.json["answer"] for done in asked] == ["nails"] * 6
        assert sum(done.json["calls"] for done in asked) / 6 == arm["calls_per_task"]
        assert arm["accuracy"] == 1.0


def test_what_moved_is_named_and_strict_refuses_it(
    heedful: Heedful, folder: str, server: FaultyServer
) -> None:
    notes = Path(folder) / "notes.txt"
    notes.write_text(notes.read_text() + "Rope is a hint.\n")
    done = heedful("ask", QUESTIONS[0], "--study", folder)
    assert (done.code, done.err) == (0, "heedful: changed since desk was locked: bank notes\n")
    refused = heedful("ask", QUESTIONS[0], "--study", folder, "--strict")
    assert (refused.code, refused.out) == (4, "")
    assert "bank notes changed" in refused.err
    assert heedful("study", "export", folder, "--to", "x.policy").code == 4
    renamed = heedful("ask", QUESTIONS[0], "--study", folder, "--model", "other")
    assert "model (locked: m," in renamed.err


def test_an_endpoint_whose_replies_changed_is_refused_strictly(
    heedful: Heedful, folder: str, server: FaultyServer
) -> None:
    server.script = lambda request: answers("another model", -3.0)
    assert heedful("ask", QUESTIONS[0], "--study", folder).err == ""
    refused = heedful("ask", QUESTIONS[0], "--study", folder, "--strict")
    assert (refused.code, "the endpoint's replies changed" in refused.err) == (4, True)


def test_environment_variables_do_not_replace_the_locked_model(
    heedful: Heedful, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEEDFUL_URL", "http://127.0.0.1:9/v1")
    assert heedful("ask", QUESTIONS[0], "--study", folder, "--json").json["answer"] == "nails"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("x", "--study", "s", "--policy", "p"), "give either --study or --policy"),
        (("x", "--study", "s", "--bank", "b", "--max-tokens", "3"), "--study decides --bank, --max-tokens"),
        (("x", "--study", "nowhere"), "cannot be read"),
        (("x", "--policy", "nowhere"), "does not exist: heedful study export"),
        (("x", "--strict"), "--strict needs --study or --policy"),
        (("x", "--scope", "ana"), "'ana' is not a scope"),
        ((" ",), "the question is empty"),
        ((), "the question is empty"),
        (("x", "--file", "f"), "give either a question or --file"),
        (("x", "--out", "f"), "--out needs --file"),
        (("--file", "f", "--json"), "--json needs --out"),
        (("--file", "nowhere"), "nowhere cannot be read"),
        (("--file", "f", "--out", "./f"), "give the answers a file of their own"),
        (("x", "-b", "a", "-b", "b"), "unknown bank 'a'"),
        (("x", "-b", "a", "-b", "b", "--arm", "always"), "--arm always takes one bank"),
        (("x", "-b", "a", "-b", "none"), "named 'none'"),
        (("x", "-b", "a", "-b", "b", "--combine", "agree"), "use --arm gate"),
    ],
)
def test_words_that_contradict_each_other_get_one_sentence(
    heedful: Heedful, words: tuple[str, ...], message: str
) -> None:
    done = heedful("ask", *words, "--url", "http://127.0.0.1:9/v1")
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1


def test_several_banks_are_asked_in_order_and_the_first_accepted_answer_wins(
    heedful: Heedful, server: FaultyServer
) -> None:
    heedful("bank", "add", "No shelf is here.", "--bank", "empty", "--kind", "fact")
    heedful("bank", "add", "Every shelf holds nails.", "--bank", "nails", "--kind", "fact")
    heedful("bank", "add", "Every shelf holds paint.", "--bank", "paint", "--kind", "fact")
    words = ("--url", server.url, "--model", "m", "--recall", "bm25", "--json")
    banks = ("--bank", "empty", "--bank", "paint", "--bank", "nails")
    asked = heedful("ask", "What is on shelf 1?", *banks, "--margin", "0.1", *words).json
    assert (asked["answer"], asked["calls"]) == ("paint", 3)
    both = heedful("ask", "What is on shelf 1?", *banks, "--combine", "dual", *words).json
    assert both["calls"] == 4
    shown = heedful("decisions", "show", "--json").json
    assert [candidate["record"]["source"] for candidate in shown["candidates"]] == ["empty", "paint", "nails"]


def test_a_memory_of_one_user_reaches_only_that_user(heedful: Heedful, server: FaultyServer) -> None:
    heedful("bank", "add", "Ana's shelf holds nails.", "--bank", "b", "--scope", "user=ana")
    words = ("--bank", "b", "--url", server.url, "--model", "m", "--recall", "bm25", "--json")
    for scope, answer in ((("--scope", "user=ana"), "nails"), (("--scope", "user=bo"), "rope"), ((), "rope")):
        assert heedful("ask", "What is on the shelf?", *scope, *words).json["answer"] == answer
    of_ana = heedful("decisions", "ls", "--user", "ana", "--json").json["decisions"]
    assert [decision["answer"] for decision in of_ana] == ["nails"]
    heedful("purge", "--user", "ana")
    assert heedful("bank", "ls", "--json").json == {"banks": {}}


def test_a_share_of_answers_takes_part_in_a_trial(heedful: Heedful, server: FaultyServer) -> None:
    heedful("bank", "add", "Every shelf holds nails.", "--bank", "b")
    words = ("--bank", "b", "--url", server.url, "--model", "m", "--recall", "bm25", "--explore", "1")
    for n in range(12):
        assert heedful("ask", f"What is on shelf {n}?", *words, "--json").json["answer"] in ("nails", "rope")
    trials = heedful("decisions", "stats", "--json").json["trials"]
    assert (trials["begun"], trials["decided"]) == (12, 12)
    ids = [one["id"] for one in heedful("decisions", "ls", "--json").json["decisions"]]
    shown = [heedful("decisions", "show", id, "--json").json for id in ids]
    assert all((one["answer"] == "nails") == one["trial"]["allowed"] for one in shown)
