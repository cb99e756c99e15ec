"""`heedful study rows`, `judge-check`, and what a report shows of one's own questions."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Heedful
from tests.cli.test_study import one_sentence
from tests.faulty import FaultyServer, Play, Request, answers

STUDY = """
name = "sums"
[model]
url = "{url}"
model = "m"
[questions]
file = "sums.csv"
metric = "number"
max_tokens = 40
[sources.notes]
bank = "notes.txt"
[fit]
signals = ["mean"]
families = ["gate"]
calibrated = false
"""


def clerk(request: Request) -> Play:
    """Works out a sum; without a note it is off by one and unsure, except that 3 and 9 are the reverse."""
    if "judge" in json.dumps(request.body["messages"][0]):
        return answers("yes" if "Given answer: 1\n" in request.question else "no")
    said = request.question
    if "Crate" not in said:
        return answers("The sea is salty.")
    n = int(said.partition("Crate ")[2].partition(" ")[0])
    noted = "Count" in said
    right = noted != (n % 6 == 3)
    total = 10 * n + 4 + (not right)
    return answers(f"Crate {n}: {10 * n} + 4 = {total}. Answer: {total}", -0.2 if noted else -0.9)


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer(clerk) as running:
        yield running


@pytest.fixture
def study(server: FaultyServer, tmp_path: Path) -> Path:
    rows = [f"{n},Crate {n} holds {10 * n} apples and gets 4: how many?,{10 * n + 4}" for n in range(1, 25)]
    (tmp_path / "sums.csv").write_text("\n".join(["id,question,answer", *rows]))
    (tmp_path / "notes.txt").write_text("Count the apples that a crate holds and add what it gets.\n")
    (tmp_path / "sums.toml").write_text(STUDY.format(url=server.url))
    return tmp_path / "sums.toml"


@pytest.fixture
def done(heedful: Heedful, study: Path) -> Path:
    out = study.parent / "out"
    finished = heedful("study", "run", str(study), "--out", str(out))
    assert finished.code == 0, finished.err
    assert "tokens" in finished.out
    return out


def test_rows_show_questions_answers_entries_and_grades(heedful: Heedful, done: Path) -> None:
    found = heedful("study", "rows", str(done), "--json").json
    effects = [row["effect"] for row in found["rows"]]
    assert (found["study"], found["arm"]) == ("sums", "heedful")
    assert set(effects) == {"spoiled", "mended"}
    assert effects == sorted(effects, reverse=True)
    for row in found["rows"]:
        assert f"Crate {row['task']} holds" in row["question"]
        assert row["source"] == "notes"
        assert row["entries"][0]["text"].startswith("Count the apples")
        right = row["targets"][0]
        assert (row["first_answer"] == right) == (row["effect"] == "spoiled")
        assert (row["final_answer"] == right) == (row["effect"] == "mended")
    text = heedful("study", "rows", str(done), "--spoiled").out
    assert text.count("spoiled  ") == effects.count("spoiled")
    assert "mended" not in text
    assert "Count the apples" in text
    only = heedful("study", "rows", str(done), "--mended", "--json").json["rows"]
    assert len(only) == effects.count("mended")


def test_every_row_of_any_arm_can_be_shown(heedful: Heedful, done: Path) -> None:
    rows = heedful("study", "rows", str(done), "--all", "--arm", "baseline", "--json").json["rows"]
    assert len(rows) == 12
    assert {row["effect"] for row in rows} <= {"right", "wrong"}
    assert heedful("study", "rows", str(done), "--arm", "baseline").out == "no such row\n"
    one_sentence(
        heedful("study", "rows", str(done), "--arm", "luck"), 2, "unknown arm 'luck'", "always-notes"
    )
    one_sentence(heedful("study", "rows", str(done), "--all", "--mended"), 2, "--all")


def test_a_report_has_the_changed_rows_unless_it_is_to_be_published(heedful: Heedful, done: Path) -> None:
    report = json.loads((done / "report.json").read_text())
    assert report["warnings"] == []
    assert {row["effect"] for row in report["changes"]} == {"spoiled", "mended"}
    page = (done / "report.html").read_text()
    assert "Answers that memory changed" in page
    assert "Count the apples" in page
    assert heedful("study", "report", str(done), "--no-texts").code == 0
    for name in ("report.html", "report.md", "report.json"):
        text = (done / name).read_text()
        assert "apples" not in text
        assert "memory changed" not in text


def test_running_a_finished_study_again_asks_nothing(
    heedful: Heedful, done: Path, server: FaultyServer
) -> None:
    asked = len(server.requests)
    again = heedful("study", "run", str(done), "--json")
    assert (again.code, again.json["test_openings"]) == (0, 1)
    assert len(server.requests) == asked


def test_grades_that_look_wrong_are_said_first(heedful: Heedful, study: Path) -> None:
    text = study.read_text().replace(
        'metric = "number"', "metric = \"number\"\nanswer_pattern = 'Crate (\\d+)'"
    )
    study.write_text(text)
    out = study.parent / "out"
    recorded = heedful("study", "record", str(study), "--out", str(out))
    assert recorded.out.startswith("The grades may be wrong: ")
    assert recorded.out.count("the right answer is") == 3
    run = heedful("study", "run", str(study), "--out", str(out))
    assert "heedful: The grades may be wrong: " in run.err
    assert run.out.startswith("The grades may be wrong: ")
    assert (out / "report.md").read_text().split("\n\n")[1].startswith("The grades may be wrong: ")
    assert heedful("study", "status", str(out), "--json").json["warnings"][0]["examples"]


def test_the_same_question_on_both_sides_is_refused(heedful: Heedful, study: Path) -> None:
    asked = (study.parent / "sums.csv").read_text()
    (study.parent / "again.csv").write_text(asked.replace("holds", "HOLDS").replace("\n3,", "\nthird,"))
    study.write_text(study.read_text().replace('file = "sums.csv"', 'fit = "sums.csv"\ntest = "again.csv"'))
    done = heedful("study", "record", str(study), "--out", str(study.parent / "out"))
    one_sentence(done, 4, "24 of the questions are on the fit and on the test side", "3 and third")


def test_a_judge_is_checked_against_a_graded_sample(
    heedful: Heedful, study: Path, server: FaultyServer, tmp_path: Path
) -> None:
    judge = f'metric = "judge"\n[questions.judge]\nurl = "{server.url}"\ninstructions = "You judge."'
    study.write_text(study.read_text().replace('metric = "number"\nmax_tokens = 40', judge))
    sample = tmp_path / "sample.jsonl"
    rows = [{"id": "1", "answer": "14", "right": True}, {"id": "2", "answer": "1", "right": False}]
    sample.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ("study", "judge-check", str(study), "--sample", str(sample), "--out", str(tmp_path / "out"))
    found = heedful(*command)
    assert found.code == 0, found.err
    assert found.out.startswith("the judge agrees with the person on 0.0% of 2")
    assert "1: the person says right: '14'" in found.out
    asked = len(server.requests)
    assert heedful(*command, "--json").json["agreement"]["value"] == 0
    assert len(server.requests) == asked
