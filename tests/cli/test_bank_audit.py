import asyncio
from pathlib import Path

from heedful import Database, SqliteStore
from heedful.types import Evidence
from tests.cli.conftest import Heedful


def test_the_audit_log_says_who_changed_what_and_why(heedful: Heedful) -> None:
    heedful("bank", "add", "Ship before noon.", "--id", "ship")
    assert "no entry of bank default has changed its state" in heedful("bank", "audit").err
    heedful("bank", "retire", "ship", "--reason", "stale", "--by", "ana")
    heedful("bank", "restore", "ship")
    changes = heedful("bank", "audit", "--json").json["changes"]
    assert [(c["before"], c["state"], c["reason"]) for c in changes] == [
        ("active", "retired", "stale"),
        ("retired", "active", ""),
    ]
    assert changes[0]["by"] == "ana"
    assert changes[1]["by"] not in ("", "ana"), "by default it is the user of the process"
    told = heedful("bank", "audit").out
    assert "ship: active → retired by ana: stale" in told
    assert "retired by ana: stale" in heedful("bank", "show", "ship").out


def test_live_governance_is_audited_with_its_evidence(heedful: Heedful, home: Path) -> None:
    for id in ("bad", "b", "c", "d"):
        heedful("bank", "add", f"Rule {id}.", "--id", id)
    database = Database(home / "heedful" / "heedful.db")
    store = SqliteStore(database)
    entry = asyncio.run(store.entry("default", "bad"))
    seen = [
        Evidence(entry="bad", version=entry.digest, task=str(n), utility=-1.0, decision=str(n))
        for n in range(9)
    ]
    asyncio.run(store.observe("default", seen))
    database.close()
    planned = heedful("govern", "--live", "--json").json
    assert [(c["entry"], c["state"]) for c in planned["changes"]] == [("bad", "quarantined")]
    assert heedful("bank", "audit", "--json").json["changes"] == []
    assert "bad quarantined: betting" in heedful("govern", "--live", "--apply", "--by", "cron").out
    [change] = heedful("bank", "audit", "--json").json["changes"]
    assert (change["by"], change["grounds"]["hurts"]) == ("cron", 9)
    assert "by cron: betting" in heedful("bank", "audit").out
    assert "no entry of bank default changes its state" in heedful("govern", "--live").out


def test_options_without_effect_are_refused(heedful: Heedful) -> None:
    heedful("bank", "add", "A rule.")
    for words, problem in (
        (("--by", "ana"), "--by has no effect without --apply"),
        (("--live", "--quarantine"), "--quarantine has no effect with --live"),
        (("--live", "--rule", "sign"), "which the rule sign does not allow"),
    ):
        done = heedful("govern", *words)
        assert (done.code, problem in done.err) == (2, True), done.err
