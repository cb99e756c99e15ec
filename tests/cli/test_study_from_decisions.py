import json
from pathlib import Path

from heedful.protocol.ledger import Ledger
from tests.cli.conftest import Heedful
from tests.cli.test_asking import shelves
from tests.faulty import FaultyServer


def test_real_traffic_becomes_a_study_that_runs(heedful: Heedful, tmp_path: Path) -> None:
    heedful("bank", "add", "Every shelf holds nails.", "--bank", "notes", "--kind", "fact")
    out = str(tmp_path / "traffic")
    with FaultyServer(shelves) as server:
        words = ("--bank", "notes", "--url", server.url, "--model", "m", "--recall", "bm25", "--json")
        for n in range(8):
            decision = heedful("ask", f"What is on shelf {n} in the shed?", *words).json["decision"]
            heedful("feedback", decision, "--answer", "nails")
        told = heedful("study", "from-decisions", "--out", out, "--test-share", "0.5", "--json")
        assert told.code == 0, told.err
        assert told.json == {
            "study": "traffic",
            "folder": out,
            "fit": 4,
            "test": 4,
            "other_settings": 0,
            "repeated": 0,
            "passes": 8,
            "banks": ["notes"],
        }
        asked = len(server.requests)
        done = heedful("study", "run", out, "--json")
        assert done.code == 0, done.err
        assert done.json["arms"]["heedful"]["accuracy"] == 1.0
        fit_calls = [
            r for r in server.requests[asked:] if any(f"shelf {n} in" in r.question for n in range(4))
        ]
        assert len(fit_calls) <= 3, "only to try the log-probs: the fit side was recorded in use"
    assert len(Ledger(Path(out) / "ledger.jsonl").passes) == 16
    again = heedful("study", "from-decisions", "--out", out)
    assert (again.code, "holds a study already" in again.err) == (2, True)


def test_without_feedback_there_is_no_study(heedful: Heedful, tmp_path: Path) -> None:
    done = heedful("study", "from-decisions", "--out", str(tmp_path / "s"))
    assert (done.code, done.out) == (2, "")
    assert "heedful feedback DECISION --answer TEXT" in done.err


def test_a_study_takes_a_bank_from_the_store_and_keeps_it(heedful: Heedful, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("Every shelf holds nails.\nEvery door is red.\n")
    for side in ("fit", "test"):
        rows = [
            {"id": f"{side}{n}", "question": f"What is on {side} {n}?", "answer": "nails"} for n in range(4)
        ]
        (tmp_path / f"{side}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    study = """
name = "s"
[questions]
fit = "fit.jsonl"
test = "test.jsonl"
[sources.stored]
bank = "store:mine"
[sources.filed]
bank = "notes.txt"
entry_kind = "fact"
"""
    (tmp_path / "s.toml").write_text(study)
    missing = heedful("study", "status", str(tmp_path / "s.toml"), "--out", str(tmp_path / "out"))
    assert (missing.code, "the store has no bank 'mine'" in missing.err) == (2, True)
    heedful("bank", "import", str(notes), "--bank", "mine", "--kind", "fact")
    assert heedful("study", "status", str(tmp_path / "s.toml"), "--out", str(tmp_path / "out")).code == 0

    from heedful.protocol.setup import prepare

    def banks() -> dict[str, set[tuple[str, str]]]:
        setup = prepare(tmp_path / "out" / "study.toml", None)
        return {name: {(e.id, e.digest) for e in bank.entries()} for name, bank in setup.banks.items()}

    assert banks()["stored"] == banks()["filed"], "ids join: the same file gives the same entries"
    assert len(banks()["stored"]) == 2
    heedful("bank", "add", "Another.", "--bank", "mine")
    assert len(banks()["stored"]) == 2, "the folder is self-contained"
    heedful("study", "status", str(tmp_path / "s.toml"), "--out", str(tmp_path / "out"))
    assert len(banks()["stored"]) == 3, "before the lock, the study file copies its banks again"
    (tmp_path / "s.toml").write_text(study.replace("store:mine", "store:../x"))
    bad = heedful("study", "status", str(tmp_path / "s.toml"), "--out", str(tmp_path / "out"))
    assert (bad.code, "write it as store:NAME" in bad.err) == (2, True)
