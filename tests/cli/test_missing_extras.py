"""What a command says when the extra that it needs is not installed."""

from pathlib import Path

import pytest

from tests.cli.conftest import Heedful
from tests.faulty import FaultyServer, answers, in_turn
from tests.test_extras import without


def test_the_demo_names_both_extras_before_it_downloads(
    heedful: Heedful, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, "embedded", "study")
    done = heedful("demo")
    assert (done.code, done.out) == (3, "")
    assert "pip install 'heedful[embedded,study]'" in done.err


def test_ask_without_the_extra_names_the_endpoint_as_the_other_way(
    heedful: Heedful, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, "embedded")
    done = heedful("ask", "hello?")
    assert done.code == 3
    assert "pip install 'heedful[embedded]' (--url ENDPOINT needs no extra)" in done.err


def test_recall_by_meaning_needs_the_extra_and_recall_by_words_does_not(
    heedful: Heedful, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without(monkeypatch, "embedded", "study")
    (tmp_path / "notes.txt").write_text("The support desk opens at 7 am.\n")
    with FaultyServer(in_turn(answers("at 7"))) as server:
        ask = ("ask", "When does the support desk open?", "--url", server.url, "--json")
        assert heedful(*ask).json["answer"] == "at 7", "an empty bank needs nothing"
        assert heedful("bank", "import", str(tmp_path / "notes.txt"), "--bank", "b").code == 0
        refused = heedful(*ask, "--bank", "b")
        assert refused.code == 3
        assert "pip install 'heedful[embedded]' (--recall bm25 needs no extra)" in refused.err
        assert heedful(*ask, "--bank", "b", "--recall", "bm25").json["route"] == "consult"


def test_doctor_shows_which_extras_are_installed(heedful: Heedful, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "study")
    checks = {check["name"]: check for check in heedful("doctor", "--json").json["checks"]}
    assert checks["study"]["ok"]
    assert "pip install 'heedful[study]'" in checks["study"]["detail"]
    assert "xllamacpp" in checks["embedded"]["detail"]


def test_a_study_that_recalls_by_meaning_names_the_setting_that_needs_no_extra(
    heedful: Heedful, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without(monkeypatch, "embedded")
    rows = [f'{{"id": "{n}", "question": "What is on shelf {n}?", "answer": "nails"}}\n' for n in range(4)]
    (tmp_path / "q.jsonl").write_text("".join(rows))
    (tmp_path / "notes.txt").write_text("Every shelf holds nails.\n")
    file = tmp_path / "desk.toml"
    file.write_text(
        'name = "desk"\n[model]\nurl = "http://127.0.0.1:9/v1"\n[questions]\nfile = "q.jsonl"\n'
        '[sources.notes]\nbank = "notes.txt"\n'
    )
    done = heedful("study", "record", str(file), "--out", str(tmp_path / "out"))
    assert done.code == 3
    assert 'recall = "bm25" in each [sources.NAME] needs no extra' in done.err
