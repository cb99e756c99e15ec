"""What a study is made ready with, and what it refuses."""

import json
from pathlib import Path

import pytest

from heedful import (
    LeakError,
    MissingError,
    UsageError,
)
from heedful.protocol.setup import prepare
from heedful.protocol.workspace import open_workspace


def test_a_test_question_inside_a_bank_is_refused(study: Path) -> None:
    (study.parent / "notes.txt").write_text("what is on shelf 1007?\n")
    with pytest.raises(LeakError, match="contains questions of the fit or the test side") as caught:
        prepare(open_workspace(study, study.parent / "out").study, None)
    assert caught.value.exit_code == 4


def test_the_rows_left_for_banks_become_facts(tmp_path: Path) -> None:
    choices = [{"label": "A", "text": "the sun"}, {"label": "B", "text": "a lamp"}]
    rows = [
        {"id": f"q{n}", "question": f"What lit the room {n} at noon?", "answer": "B", "choices": choices}
        for n in range(8)
    ]
    (tmp_path / "fit.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:6]))
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[6:]))
    text = """
name = "rooms"
questions = {fit = "fit.jsonl", test = "test.jsonl", metric = "choice"}
split = {fit = 3, pool = 3}
[sources.fact]
bank = "pool"
entry_kind = "fact"
recall = "bm25"
"""
    (tmp_path / "s.toml").write_text(text)
    setup = prepare(tmp_path / "s.toml", None)
    facts = {entry.text: entry.kind for entry in setup.banks["fact"].entries()}
    assert facts == {f"{item.question} a lamp": "fact" for item in setup.splits.pool}
    (tmp_path / "s.toml").write_text(text + 'responses = "worked.jsonl"\n')
    with pytest.raises(UsageError, match="responses, which require bank = 'pool' and no facts"):
        prepare(tmp_path / "s.toml", None)


def test_benchmark_data_that_are_not_there_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    (tmp_path / "s.toml").write_text('name = "s"\nbenchmark = "svamp"\n[sources.retry]\nkind = "retry"\n')
    with pytest.raises(MissingError, match="set HEEDFUL_DATA or use --data"):
        prepare(tmp_path / "s.toml", None)
    (tmp_path / "svamp").mkdir()
    (tmp_path / "svamp" / "train.jsonl").write_text("{}")
    with pytest.raises(UsageError, match=r"sha256 .* expected 5478cc5f"):
        prepare(tmp_path / "s.toml", tmp_path)
