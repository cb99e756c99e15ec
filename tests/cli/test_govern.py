"""`heedful govern` and `heedful bank evidence`: from the store's evidence and from a study's ledger."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from heedful import Database, SqliteStore, new_entry
from heedful.protocol.ledger import Ledger
from heedful.records import RecallRef
from heedful.types import Evidence
from tests.cli.conftest import Done, Heedful
from tests.making import ledger_row

HARMFUL, HELPFUL = (
    new_entry("Always add.", kind="rule", id="add"),
    new_entry("Read twice.", kind="rule", id="read"),
)


@pytest.fixture
def store(home: Path) -> Iterator[SqliteStore]:
    database = Database(home / "heedful" / "heedful.db")
    kept = SqliteStore(database)
    asyncio.run(kept.put("rules", [HARMFUL, HELPFUL]))
    yield kept
    database.close()


@pytest.fixture
def judged(store: SqliteStore) -> SqliteStore:
    asyncio.run(
        store.observe(
            "rules",
            [
                Evidence(entry=entry.id, version=entry.digest, task=f"t{n}", utility=utility)
                for entry, utility in ((HARMFUL, -1.0), (HELPFUL, 1.0))
                for n in range(15)
            ],
        )
    )
    return store


def test_a_dry_run_tells_who_would_go_and_changes_nothing(heedful: Heedful, judged: SqliteStore) -> None:
    done = heedful("govern", "--bank", "rules", "--max-share", "0.5")
    assert done.code == 0
    assert "add would be retired: Always add." in done.out
    assert "15 tasks (0 helps, 15 hurts)" in done.out
    assert "nothing was changed" in done.err
    assert {entry.state for entry in asyncio.run(judged.entries("rules"))} == {"active"}


def test_apply_retires_and_restore_takes_it_back(heedful: Heedful, judged: SqliteStore) -> None:
    done = heedful("govern", "--bank", "rules", "--max-share", "0.5", "--apply", "--json").json
    assert [(one["entry"], one["to"]) for one in done["going"]] == [("add", "retired")]
    assert asyncio.run(judged.entry("rules", "add")).state == "retired"
    assert "betting" in asyncio.run(judged.entry("rules", "add")).reason
    assert heedful("govern", "--bank", "rules", "--max-share", "0.5", "--json").json["going"] == []
    assert heedful("bank", "restore", "add", "--bank", "rules").code == 0
    assert asyncio.run(judged.entry("rules", "add")).state == "active"


def test_quarantine_then_retirement(heedful: Heedful, judged: SqliteStore) -> None:
    govern = ("govern", "--bank", "rules", "--max-share", "0.5", "--apply")
    for _ in range(2):
        heedful(*govern, "--quarantine")
        assert asyncio.run(judged.entry("rules", "add")).state == "quarantined"
    heedful(*govern)
    assert asyncio.run(judged.entry("rules", "add")).state == "retired"


def test_protected_entries_stay(heedful: Heedful, judged: SqliteStore) -> None:
    heedful("bank", "protect", "add", "--bank", "rules")
    done = heedful("govern", "--bank", "rules", "--max-share", "1", "--apply", "--json").json
    assert (done["going"], [one["entry"] for one in done["spared"]]) == ([], ["add"])


def test_evidence_is_listed_most_harmful_first(heedful: Heedful, judged: SqliteStore) -> None:
    found = heedful("bank", "evidence", "--bank", "rules", "--json").json["entries"]
    assert [one["entry"] for one in found] == ["add", "read"]
    assert (found[0]["tasks"], found[0]["hurts"], found[0]["mean"]) == (15, 15, -1)
    assert found[0]["low"] <= -1 < found[0]["high"] < 0
    assert "-1.00 [-1.00" in heedful("bank", "evidence", "--bank", "rules").out
    listed = heedful("bank", "ls", "--bank", "rules", "--sort", "harm", "--json").json["banks"]["rules"]
    assert [entry["id"] for entry in listed] == ["add", "read"]


@pytest.fixture
def study(tmp_path: Path, store: SqliteStore) -> Path:
    """A ledger in which `add` was recalled 20 times and always spoiled the answer."""
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "study.toml").write_text(
        'name = "s"\n[questions]\nfile = "q.jsonl"\n[sources.rules]\nbank = "r.txt"\n'
    )
    with Ledger(folder / "ledger.jsonl") as ledger:
        for n in range(20):
            ledger.append(ledger_row("none", f"t{n}", right=True, calls=1))
            recalls = (RecallRef(entry="add", version=HARMFUL.digest, score=1.0),)
            ledger.append(ledger_row("rules", f"t{n}", recalls=recalls, calls=1))
    return folder


def test_a_studys_fit_side_is_evidence_for_the_bank_it_used(heedful: Heedful, study: Path) -> None:
    done = heedful("govern", "--bank", "rules", "--study", str(study), "--max-share", "0.5", "--json").json
    assert [(one["entry"], one["hurts"]) for one in done["going"]] == [("add", 20)]


def one_sentence(done: Done, says: str) -> None:
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert says in done.err


def test_mistakes_get_one_sentence_and_change_nothing(
    heedful: Heedful, study: Path, store: SqliteStore
) -> None:
    asyncio.run(store.put("other", [new_entry("Something else.", kind="rule")]))
    where = ("--study", str(study))
    one_sentence(heedful("govern", "--bank", "nowhere"), "unknown bank 'nowhere'")
    one_sentence(heedful("govern", "--bank", "rules", *where, "--source", "x"), "has no bank 'x'")
    one_sentence(heedful("govern", "--bank", "other", *where, "--source", "rules"), "has none of the entries")
    (study / "ledger.jsonl").write_text("")
    one_sentence(heedful("govern", "--bank", "rules", *where), "is empty: run heedful study record")
    one_sentence(heedful("govern", "--bank", "rules", "--confidence", "2"), "between 0 and 1")
    assert {entry.state for entry in asyncio.run(store.entries("rules"))} == {"active"}


def test_nothing_known_condemns_nobody(heedful: Heedful, store: SqliteStore) -> None:
    assert "no entry of bank rules needs to be retired" in heedful("govern", "--bank", "rules").out
    assert (
        json.loads(heedful("bank", "evidence", "--bank", "rules", "--json").out)["entries"][0]["tasks"] == 0
    )
