"""`heedful ask --file`: a batch that resumes."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from heedful import Database
from tests.cli.conftest import Done, Heedful
from tests.faulty import Exchange, FaultyServer, Play, Request, answers, fails

WORDS = ("--model", "m", "--arm", "never")


def echo(request: Request) -> Play:
    return fails(400, "too long") if "bad" in request.question else answers(f"re {request.question}")


def rows_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def questions(folder: Path, *rows: dict[str, Any]) -> str:
    file = folder / "questions.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(file)


def test_every_question_gets_a_line_and_several_are_asked_at_a_time(heedful: Heedful, tmp_path: Path) -> None:
    file = questions(tmp_path, *({"id": n, "question": f"Question {n}?"} for n in range(20)))
    five = Barrier(5)

    def together(request: Request) -> Play:
        def play(exchange: Exchange) -> None:
            five.wait(timeout=60)  # only five requests at a time pass
            echo(request)(exchange)

        return play

    with FaultyServer(together) as server:
        done = heedful("ask", "--file", file, "--url", server.url, "--at-once", "5", *WORDS)
        assert server.most_at_once == 5
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert {line["id"]: line["answer"] for line in lines} == {str(n): f"re Question {n}?" for n in range(20)}
    assert set(lines[0]) == {
        *("id", "question", "answer", "route", "verdict", "reason", "confidence", "calls", "decision")
    }
    assert "asking: 20 of 20" in done.err
    recorded = heedful("decisions", "ls", "--limit", "99", "--json").json["decisions"]
    assert {one["id"] for one in recorded} == {line["decision"] for line in lines}


def test_a_decision_that_cannot_be_recorded_is_not_named(
    heedful: Heedful, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.cli.asking.LOCKED_SECONDS", 0.0)
    store = tmp_path / "s.db"
    with closing(Database(store)), closing(sqlite3.connect(store, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with FaultyServer(echo) as server:
            words = ("--file", questions(tmp_path, {"question": "One?"}), "--store", str(store), "--url")
            done = heedful("ask", *words, server.url, *WORDS)
    assert (done.json["answer"], done.json["decision"]) == ("re One?", None)


def test_a_run_resumes_after_a_kill_and_asks_failed_questions_again(heedful: Heedful, tmp_path: Path) -> None:
    file = questions(tmp_path, {"question": "One?"}, {"question": "A bad one?"}, {"question": "Three?"})
    out = tmp_path / "out.jsonl"

    def run(script: Any) -> tuple[Done, int]:
        with FaultyServer(script) as server:
            words = ("--file", file, "--out", str(out), "--url", server.url, "--json")
            return heedful("ask", *words, *WORDS), len(server.requests)

    first, asked = run(echo)
    assert (first.code, asked) == (1, 3)
    assert first.json["answered"] == 2
    assert "1 of 3 questions failed" in first.err
    whole = out.read_text()
    [failed] = [row for row in rows_of(out) if "error" in row]
    assert (failed["question"], "too long" in failed["error"]) == ("A bad one?", True)
    kept = [line for line in whole.splitlines() if "One?" in line or "bad" in line]
    out.write_text("\n".join(kept) + '\n{"id": "cut o')
    second, asked = run(lambda request: answers("now"))
    assert (second.code, asked) == (0, 2)
    assert second.json == {"questions": 3, "answered": 2, "failed": 0, "known": 1, "out": str(out)}
    answered = [json.loads(line) for line in out.read_text().splitlines() if line.endswith("}")]
    assert sorted(row["question"] for row in answered if "answer" in row) == ["A bad one?", "One?", "Three?"]
    third, asked = run(lambda request: answers("never"))
    assert (third.code, asked, third.json["known"]) == (0, 0, 3)


def test_an_endpoint_that_is_down_stops_the_run_and_keeps_the_answers(
    heedful: Heedful, tmp_path: Path
) -> None:
    file = questions(tmp_path, *({"id": n, "question": f"A bad question {n}?"} for n in range(20)))
    with FaultyServer(echo) as server:
        done = heedful("ask", "--file", file, "--url", server.url, "--at-once", "1", *WORDS)
        assert len(server.requests) == 5
    assert done.code == 1
    assert "5 questions failed in a row" in done.err


def test_choices_and_scopes_of_a_line_become_the_task_s(heedful: Heedful, tmp_path: Path) -> None:
    row = {
        "question": "Which?",
        "choices": [{"label": "A", "text": "tea"}, {"label": "B", "text": "rum"}],
        "scope": {"user": "ana"},
    }
    with FaultyServer(echo) as server:
        heedful("ask", "--file", questions(tmp_path, row), "--url", server.url, "--scope", "app=x", *WORDS)
    task = heedful("decisions", "show", "--json").json["task"]
    assert (task["question"], task["choices"]) == ("Which?\nA. tea\nB. rum", ["A", "B"])
    assert task["scope"] == {"user": "ana", "app": "x"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no questions"),
        ("{}", "line 1 is not a question"),
        ('{"question": " "}', "line 1 has an empty question"),
        ('{"question": "a"}\n\n{"question": "a"}', "line 3 repeats line 1"),
        ('{"id": 1, "question": "a"}\n{"id": "1", "question": "b"}', "line 2 repeats line 1"),
    ],
)
def test_a_bad_file_gets_one_sentence(heedful: Heedful, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "q.jsonl").write_text(text)
    done = heedful("ask", "--file", str(tmp_path / "q.jsonl"), "--url", "http://127.0.0.1:9/v1", *WORDS)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_answers_that_cannot_be_written_get_one_sentence(heedful: Heedful, tmp_path: Path) -> None:
    file = questions(tmp_path, {"question": "One?"})
    for out in (tmp_path, tmp_path / "no folder" / "out.jsonl"):
        done = heedful("ask", "--file", file, "--out", str(out), "--url", "http://127.0.0.1:9/v1", *WORDS)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(f"heedful: cannot {'read' if out == tmp_path else 'write'} {out}")
