"""The circle of docs/circle.md, command by command."""

import json
import re
import shlex
from pathlib import Path

import pytest

from heedful import wrap_openai
from tests.cli.conftest import Done, Heedful
from tests.cli.test_asking import shelves
from tests.faulty import FaultyServer

PAGE = Path(__file__).parents[2] / "docs" / "circle.md"
QUESTIONS = 8


def test_the_circle_closes(heedful: Heedful, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    close_circle(heedful)


def test_the_circle_closes_in_postgres(
    heedful: Heedful, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEEDFUL_STORE", postgres_url)
    close_circle(heedful)
    banks = heedful("bank", "ls", "--store", postgres_url, "--json").json["banks"]
    assert list(banks) == ["shed"]
    assert not list(tmp_path.rglob("heedful.db"))


def close_circle(heedful: Heedful) -> None:
    questions = [f"What is on shelf {n} in the shed?" for n in range(QUESTIONS)]
    rows = [{"id": str(n), "question": question} for n, question in enumerate(questions)]
    Path("questions.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    commands = [
        line[len("heedful ") :] for line in PAGE.read_text().splitlines() if line.startswith("heedful ")
    ]
    done: dict[str, Done] = {}
    with FaultyServer(shelves) as server:
        for command in commands:
            words = shlex.split(command.replace("http://127.0.0.1:8000/v1", server.url))
            for chosen in decisions_of("shadow.jsonl") if "DECISION" in words else [""]:
                done[command] = heedful(*[chosen if word == "DECISION" else word for word in words])
                assert done[command].code == 0, f"{command}: {done[command].err}"
        clients_own(server.url)
    assert answers_of("shadow.jsonl") == ["rope"] * QUESTIONS
    first, locked = (out for command, out in done.items() if command.startswith("shadow report"))
    assert "helps      100.0%" in first.out
    assert f"{QUESTIONS} answers in the shadow" in locked.out
    assert "promote    no" in locked.out, "eight answers do not show that harm is rare"
    assert answers_of("locked.jsonl") == ["rope"] * QUESTIONS
    assert set(answers_of("canary.jsonl")) == {"rope", "nails"}
    assert re.search(r"trials +\d+ begun|reasons|verdicts", done["decisions stats --since 7d"].out)
    assert (
        "no entry of bank shed changes its state" in done["govern --bank shed --live --apply --by weekly"].out
    )


def lines_of(file: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in Path(file).read_text().splitlines()]


def decisions_of(file: str) -> list[str]:
    return [line["decision"] for line in lines_of(file)]


def answers_of(file: str) -> list[str]:
    return [line["answer"] for line in lines_of(file)]


def clients_own(url: str) -> None:
    """The exported bundle also answers inside an OpenAI client."""
    from openai import OpenAI

    with wrap_openai(OpenAI(base_url=url, api_key="k"), "shed.policy") as client:
        response = client.chat.completions.create(
            model="my-model",
            messages=[
                {"role": "system", "content": "Answer in a few words."},
                {"role": "user", "content": "What is on shelf 3 in the shed?"},
            ],
        )
    assert response.choices[0].message.content == "nails"
