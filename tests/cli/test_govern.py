"""`heedful govern` and `heedful bank evidence`: from the store's evidence and from a study's ledger."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from heedful import Database, SqliteStore, new_entry
from heedful.protocol.ledger import Ledger
from heedful.records import RecallRef
from heedful.types import Evidence
from tests.cli.conftest import Done, Heedful
from tests.faulty import FaultyServer, Play, Request, answers
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
                Evidence(entry=entry.id, version=entry.digest, task=f"{entry.id}{n}", utility=utility)
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
    groups = heedful("bank", "evidence", "--bank", "rules", "--json").json["groups"]
    assert [(one["kind"], one["tasks"], one["helps"], one["hurts"]) for one in groups] == [
        ("bank", 30, 15, 15)
    ]
    assert "bank rules" in heedful("bank", "evidence", "--bank", "rules").out.splitlines()[1]
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


def test_a_study_is_one_look_and_the_store_is_watched(heedful: Heedful, study: Path) -> None:
    govern = ("govern", "--bank", "rules", "--json")
    assert heedful(*govern).json["rule"] == "betting"
    assert heedful(*govern, "--study", str(study)).json["rule"] == "sign"
    assert heedful(*govern, "--study", str(study), "--rule", "hoeffding").json["rule"] == "hoeffding"
    assert "sign: mean utility -1.00 over 20 tasks" in heedful(*govern[:3], "--study", str(study)).out


def test_a_condemned_source_is_shown_first_and_goes_as_a_whole(heedful: Heedful, store: SqliteStore) -> None:
    wiki = [new_entry(f"Rule {n}.", kind="rule", id=f"w{n}", source="wiki") for n in range(6)]
    asyncio.run(store.put("rules", wiki))
    evidence = [
        Evidence(entry=one.id, version=one.digest, task=f"{one.id}{n}", utility=-1.0)
        for one in wiki
        for n in range(2)
    ]
    asyncio.run(store.observe("rules", evidence))
    small = heedful("govern", "--bank", "rules")
    assert small.out.startswith("source wiki stays: 6 entries")
    assert "at most 25% of a bank is removed at once" in small.out
    done = heedful("govern", "--bank", "rules", "--max-share", "0.8", "--apply")
    assert done.out.splitlines()[0] == "source wiki retired: 6 entries"
    assert "12 tasks (0 helps, 12 hurts)" in done.out
    states = {entry.id: entry.state for entry in asyncio.run(store.entries("rules"))}
    assert states == {"add": "active", "read": "active", **{one.id: "retired" for one in wiki}}


def test_a_condemned_group_is_in_the_json(heedful: Heedful, store: SqliteStore) -> None:
    evidence = [
        Evidence(entry=one.id, version=one.digest, task=f"{one.id}{n}", utility=-1.0)
        for one in (HARMFUL, HELPFUL)
        for n in range(4)
    ]
    asyncio.run(store.observe("rules", evidence))
    found = heedful("govern", "--bank", "rules", "--max-share", "1", "--json").json
    (group,) = found["groups"]
    assert (group["kind"], group["name"], group["entries"]) == ("bank", "rules", ["add", "read"])
    assert (group["tasks"], group["helps"], group["hurts"], group["going"]) == (8, 0, 8, True)
    assert {(one["entry"], one["group"], one["to"]) for one in found["going"]} == {
        ("add", "bank rules", "retired"),
        ("read", "bank rules", "retired"),
    }


DESKS = """
name = "desks"
[model]
url = "{url}"
model = "m"
[questions]
fit = "fit.jsonl"
test = "test.jsonl"
[sources.notes]
bank = "notes.jsonl"
recall = "bm25"
limit = 2
"""
NOTES = {
    "trap": "The green desk opens at nine.",
    "calm": "The green desk is green and old.",
    "small": "The blue desk is blue and small.",
    "tidy": "The blue desk is blue and tidy.",
}


def porter(request: Request) -> Play:
    """Believes `nine` in a note, and knows the right answer otherwise."""
    notes = request.question.partition("Notes that may help")[2]
    return answers("nine" if "nine" in notes else "seven", -0.1)


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with FaultyServer(porter) as running:
        yield running


@pytest.fixture
def desks(heedful: Heedful, tmp_path: Path, server: FaultyServer) -> str:
    """A recorded study in which `trap` spoils eight answers, always together with `calm`."""
    notes = [{"id": id, "text": text, "kind": "fact"} for id, text in NOTES.items()]
    return recorded_desks(heedful, tmp_path, server, notes)


def recorded_desks(
    heedful: Heedful, tmp_path: Path, server: FaultyServer, notes: Sequence[Mapping[str, object]]
) -> str:
    """The folder of a study with these notes, which are also the bank `notes`."""
    rows = [
        {"id": f"{colour}{n}", "question": f"When does {colour} desk number {n} open?", "answer": "seven"}
        for colour in ("green", "blue")
        for n in range(8)
    ]
    last = [{"id": "red", "question": "When does the red desk open?", "answer": "seven"}]
    for name, lines in (("fit", rows), ("test", last), ("notes", notes)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "s.toml").write_text(DESKS.format(url=server.url))
    out = str(tmp_path / "out")
    assert heedful("study", "record", str(tmp_path / "s.toml"), "--out", out).code == 0
    assert heedful("bank", "import", str(tmp_path / "notes.jsonl"), "--bank", "notes").code == 0
    return out


def test_leave_one_out_decides_between_companions(heedful: Heedful, desks: str) -> None:
    govern = ("govern", "--bank", "notes", "--study", desks, "--json")
    before = heedful(*govern).json
    assert ([one["going"] for one in before["groups"]], before["going"]) == ([False], [])
    assert {(one["entry"], one["companion"]) for one in before["spared"]} == {
        ("trap", "calm"),
        ("calm", "trap"),
    }
    assert f"heedful study credit {desks} --source notes examines them" in before["spared"][0]["reason"]
    assert heedful("study", "credit", desks).code == 0
    after = heedful(*govern).json
    assert [one["entry"] for one in after["going"]] == ["trap"]
    assert [(one["entry"], one["uncredited"]) for one in after["spared"]] == [("calm", 0)]


def test_probes_condemn_a_suspect_and_clear_its_companion(heedful: Heedful, desks: str) -> None:
    govern = ("govern", "--bank", "notes", "--study", desks, "--probe", "6")
    found = heedful(*govern, "--json").json
    assert (found["rule"], found["calls"]) == ("betting", 12)
    assert [(one["entry"], one["probes"], one["hurts"]) for one in found["going"]] == [("trap", 6, 14)]
    assert [(one["entry"], one["probes"], one["hurts"]) for one in found["spared"]] == [("calm", 6, 8)]
    again = heedful(*govern)
    assert "6 of the tasks are probes" in again.out
    assert heedful(*govern, "--json").json["calls"] == 0, "recorded probes are not decoded again"


def test_a_group_left_out_is_condemned_by_the_difference(
    heedful: Heedful, tmp_path: Path, server: FaultyServer
) -> None:
    lines = [
        {"id": id, "text": text, "kind": "fact", "tags": [f"author:{author}"]}
        for id, text, author in (
            ("trap1", "The green desk opens at nine.", "eve"),
            ("trap2", "The blue desk opens at nine.", "eve"),
            ("calm1", "A green desk is tidy.", "ann"),
            ("calm2", "A blue desk is tidy.", "ann"),
        )
    ]
    out = recorded_desks(heedful, tmp_path, server, lines)
    govern = ("govern", "--bank", "notes", "--study", out, "--max-share", "0.5")
    before = heedful(*govern, "--json").json
    assert [(one["kind"], one["against"], one["going"]) for one in before["groups"]] == [
        ("bank", "no memory", False)
    ]
    found = heedful(*govern, "--leave-groups-out", "--json").json
    [eve] = [one for one in found["groups"] if one["going"]]
    assert (eve["name"], eve["tasks"], eve["hurts"]) == ("eve", 16, 16)
    assert eve["against"] == "the bank without it"
    assert {one["entry"] for one in found["going"]} == {"trap1", "trap2"}
    again = heedful(*govern, "--leave-groups-out", "--apply")
    assert "left out: author ann, author eve; 0 calls" in again.err
    assert "author eve retired: 2 entries" in again.out
    assert "compared with recall without the group" in again.out


def test_a_bank_without_narrower_groups_says_that_nothing_is_left_out(heedful: Heedful, desks: str) -> None:
    done = heedful("govern", "--bank", "notes", "--study", desks, "--leave-groups-out")
    assert done.code == 0
    assert "bank notes has no source, author or tag of two recalled entries or more to leave out" in done.err


def test_leave_one_out_examines_the_decisions_of_the_store(
    heedful: Heedful, desks: str, store: SqliteStore, server: FaultyServer
) -> None:
    where = ("--bank", "notes", "--url", server.url, "--recall", "bm25")
    ask = (*where, "--arm", "gate", "--threshold", "0", "--json")
    versions = {entry.id: entry.digest for entry in asyncio.run(store.entries("notes"))}
    for n in range(8):
        decision = heedful("ask", f"When does green desk number {n} open?", *ask).json["decision"]
        recalls = heedful("why", decision, "--json").json["candidates"][0]["record"]["recalls"]
        assert {recall["entry"] for recall in recalls[:2]} == {"trap", "calm"}
        evidence = [
            Evidence(
                entry=e["entry"], version=versions[e["entry"]], task=f"t{n}", utility=-1.0, decision=decision
            )
            for e in recalls
        ]
        asyncio.run(store.observe("notes", evidence))
    before = heedful("govern", "--bank", "notes", "--json").json
    assert before["going"] == []
    assert "heedful govern --bank notes --leave-one-out examines them" in before["spared"][0]["reason"]
    after = heedful("govern", "--bank", "notes", "--leave-one-out", "--json").json
    assert [one["entry"] for one in after["going"]] == ["trap"]
    lost = [replace(one, decision="gone") for one in asyncio.run(store.evidence("notes"))]
    asyncio.run(store.put("lost", list(asyncio.run(store.entries("notes")))))
    asyncio.run(store.observe("lost", lost))
    done = heedful("govern", "--bank", "lost", "--leave-one-out", "--json")
    assert done.json["going"] == []
    assert "decision gone cannot be examined" in done.err


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
    kinds = [replace(entry, kind="fact") for entry in asyncio.run(store.entries("rules"))]
    asyncio.run(store.put("facts", kinds))
    hinted = heedful("govern", "--bank", "facts", *where, "--source", "rules")
    one_sentence(hinted, "of the same ids have another content, for example another --kind")
    (study / "ledger.jsonl").write_text("")
    one_sentence(heedful("govern", "--bank", "rules", *where), "is empty: run heedful study record")
    one_sentence(heedful("govern", "--bank", "rules", "--confidence", "2"), "between 0 and 1")
    for option in (("--probe", "5"), ("--leave-groups-out",)):
        one_sentence(heedful("govern", "--bank", "rules", *option), "give the folder of a study")
    one_sentence(
        heedful("govern", "--bank", "rules", *where, "--probe", "5", "--rule", "sign"), "use betting"
    )
    one_sentence(heedful("govern", "--bank", "rules", *where, "--leave-one-out"), "heedful study credit")
    assert {entry.state for entry in asyncio.run(store.entries("rules"))} == {"active"}


def test_nothing_known_condemns_nobody(heedful: Heedful, store: SqliteStore) -> None:
    assert "no entry of bank rules needs to be retired" in heedful("govern", "--bank", "rules").out
    assert (
        json.loads(heedful("bank", "evidence", "--bank", "rules", "--json").out)["entries"][0]["tasks"] == 0
    )
