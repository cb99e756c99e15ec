"""What was acknowledged survives kill -9, and what was not is there whole or not at all.

Every kill is triggered by a line that the child printed: no clock decides when it comes.
"""

import asyncio
import json
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from heedful import Database, SqliteJournal, SqliteStore, new_entry, read_entries
from heedful.types import Evidence

pytestmark = pytest.mark.slow
ENTRIES = 3000
BANKS = ("first", "second", "third")
# The command line itself, several times in one process, under SQLite's own trace: the child says
# which statement it is about to run, and goes on.
COMMANDING = """
import json, sqlite3, sys
from collections import Counter
from functools import partial
from heedful.cli.main import run

moment, commands = sys.argv[1], json.loads(sys.argv[2])
seen = Counter()

def told(statement):
    word = statement.split(None, 1)[0]
    seen[word] += 1
    if f"{word} {seen[word]}" == moment:
        print(moment, flush=True)

class Told(sqlite3.Connection):
    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.set_trace_callback(told)

sqlite3.connect = partial(sqlite3.connect, factory=Told)
for command in commands:
    sys.argv = ["heedful", *command]
    try:
        run()
    except SystemExit as end:
        assert not end.code, end.code
print("the end", flush=True)
sys.stdin.read()
"""
ANSWERING = """
import asyncio, sys
from heedful import Controller, Database, ScriptedModel, SqliteJournal, SqliteStore, Task, arms
from heedful.types import Evidence

database = Database(sys.argv[1])
store, journal = SqliteStore(database), SqliteJournal(database)
controller = Controller(
    model=ScriptedModel(script=lambda prompt: (f"Not {prompt.messages[-1].content}.", -0.9)),
    policy=arms.retry(),
    journal=journal,
)
while True:
    outcome = controller.answer_sync(Task(question="yes"))
    assert not outcome.faults, outcome.faults
    print("decision", outcome.decision, flush=True)
    seen = Evidence(entry="e", version="v", task="t", utility=1.0, decision=outcome.decision)
    asyncio.run(store.observe("notes", [seen, seen]))
    print("evidence", outcome.decision, flush=True)
"""
MARKING = """
import asyncio, secrets, sys
from itertools import cycle
from heedful import Database, SqliteStore
from heedful.types import Mark

store = SqliteStore(Database(sys.argv[1]))
for state in cycle(["retired", "active"]):
    reason = secrets.token_hex(4)
    asyncio.run(store.mark("notes", [Mark(entry="e", state=state, reason=reason)]))
    print("mark", reason, flush=True)
"""


def moments() -> list[str]:
    """A statement, by its word and number, that the child is about to run; or a line of the command itself.

    The first import has two transactions, one to create the tables and one for its entries, each later
    import has one: so COMMIT 2 and COMMIT 3 keep the first two files.
    """
    rng = random.Random(9)
    inserts = sorted(rng.sample(range(1, 2 * ENTRIES), 8))
    acknowledged = [f"{ENTRIES} entries added to bank {bank}" for bank in BANKS[:2]]
    return [
        *("PRAGMA 1", "BEGIN 1", "CREATE 1", "CREATE 5", "COMMIT 1", "BEGIN 2"),
        *(f"INSERT {number}" for number in (1, *inserts, ENTRIES, ENTRIES + 1, 2 * ENTRIES)),
        *("COMMIT 2", "COMMIT 3", "COMMIT 4"),
        *acknowledged,
    ]


@contextmanager
def child(script: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[str], due: Callable[[str], bool]) -> list[str]:
    """The lines that a child prints up to the first that is due."""
    lines: list[str] = []
    for line in iter(process.stdout.readline, ""):
        lines.append(line.rstrip("\n"))
        if due(lines[-1]):
            return lines
        assert lines[-1] != "the end", "the child never came to the moment"
    raise AssertionError(f"the child ended by itself: {process.stderr.read()}")


def after(lines: int) -> Callable[[str], bool]:
    """Due at the line after so many."""
    left = iter(range(lines))
    return lambda line: next(left, None) is None


def killed_at(process: subprocess.Popen[str], due: Callable[[str], bool]) -> list[str]:
    """Kill the child at the first line that is due; return all lines that it printed whole."""
    lines = read_until(process, due)
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read()
    assert process.wait() == -signal.SIGKILL
    return [*lines, *rest.split("\n")[:-1]]


@contextmanager
def opened(path: Path) -> Iterator[Database]:
    """The store as the next process finds it, after SQLite looked for damage."""
    with closing(Database(path)) as database:
        with database.reading() as connection:
            assert [tuple(row) for row in connection.execute("PRAGMA integrity_check")] == [("ok",)]
        yield database


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("import") / "bank.jsonl"
    lines = [{"id": f"e{number}", "text": f"Rule {number}: {'x' * 80}"} for number in range(ENTRIES)]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return file


def imports(file: Path, store: Path, *banks: str) -> str:
    """The commands that import a file into each bank, for a child."""
    common = ["--no-embed", "--store", str(store)]
    return json.dumps([["bank", "import", str(file), "--bank", bank, *common] for bank in banks])


@pytest.mark.parametrize("moment", moments())
def test_an_import_that_is_killed_is_there_whole_or_not_at_all(
    moment: str, file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "heedful.db"
    with child(COMMANDING, moment, imports(file, path, *BANKS)) as importing:
        printed = killed_at(importing, lambda line: line == moment)
    whole, _ = read_entries(file)
    acknowledged = [bank for bank in BANKS if f"{ENTRIES} entries added to bank {bank}" in printed]
    with opened(path) as database:
        store = SqliteStore(database)
        found = {bank: asyncio.run(store.entries(bank)) for bank in BANKS}
        for bank, entries in found.items():
            assert entries in ([], whole)
            assert entries or bank not in acknowledged
            assert asyncio.run(store.put(bank, whole)) == ENTRIES - len(entries), (
                "the store can be written again"
            )
        assert all(asyncio.run(store.entries(bank)) == whole for bank in BANKS)


@pytest.mark.parametrize("moment", ["BEGIN 1", "INSERT 1", "INSERT 7", "INSERT 20", "COMMIT 1", "the end"])
def test_a_retirement_that_is_killed_is_whole_or_not_at_all_and_can_be_done_again(
    moment: str, tmp_path: Path
) -> None:
    path = tmp_path / "heedful.db"
    bad = [new_entry(f"Rule {n}.", kind="rule", id=f"e{n}") for n in range(20)]
    with opened(path) as database:
        store = SqliteStore(database)
        asyncio.run(store.put("bad", bad))
        hurt = [
            Evidence(entry=e.id, version=e.digest, task=f"t{n}", utility=-1.0) for e in bad for n in range(20)
        ]
        asyncio.run(store.observe("bad", hurt))
    govern = ["govern", "--bank", "bad", "--max-share", "1", "--apply", "--json", "--store", str(path)]
    with child(COMMANDING, moment, json.dumps([govern])) as governing:
        printed = killed_at(governing, lambda line: line == moment)
    with opened(path) as database:
        states = {entry.state for entry in asyncio.run(SqliteStore(database).entries("bad"))}
        assert states in ({"active"}, {"retired"})
        assert states == {"retired"} or moment != "the end"
        assert "the end" in printed or moment != "the end"
    subprocess.run([sys.executable, "-m", "heedful", *govern], check=True, capture_output=True)
    with opened(path) as database:
        assert {entry.state for entry in asyncio.run(SqliteStore(database).entries("bad"))} == {"retired"}


def test_the_moments_are_at_least_twenty_and_differ() -> None:
    assert len(set(moments())) == len(moments()) >= 20


def test_an_import_that_was_acknowledged_before_a_kill_stays_when_the_store_is_killed_again(
    file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "heedful.db"
    for round, moment in enumerate(["COMMIT 2", "INSERT 2000", f"{ENTRIES} entries added to bank third-2"]):
        banks = [f"{bank}-{round}" for bank in BANKS]
        with child(COMMANDING, moment, imports(file, path, *banks)) as importing:
            killed_at(importing, moment.__eq__)
    with opened(path) as database:
        sizes = asyncio.run(SqliteStore(database).banks())
    assert set(sizes.values()) == {ENTRIES}
    assert {"first-2", "second-2", "third-2"} <= set(sizes)


def test_every_decision_and_every_piece_of_evidence_that_was_acknowledged_survives_twenty_kills(
    tmp_path: Path,
) -> None:
    path = tmp_path / "heedful.db"
    rng = random.Random(20)
    printed: list[str] = []
    for _ in range(20):
        due = after(rng.randrange(1, 40))
        with child(ANSWERING, path) as answering:
            printed += killed_at(answering, due)
        with opened(path) as database:
            journal, evidence = SqliteJournal(database), asyncio.run(SqliteStore(database).evidence("notes"))
            kept = [one.decision for one in evidence]
            for line in printed:
                what, decision = line.split(" ")
                if what == "decision":
                    assert asyncio.run(journal.find(decision)).answer == "Not yes."
                else:
                    assert kept.count(decision) == 2
            assert {kept.count(decision) for decision in kept} <= {2}, "evidence is kept all or none"
    assert len(printed) > 20


def test_two_processes_on_one_store_lose_nothing_that_either_acknowledged_when_killed(tmp_path: Path) -> None:
    path = tmp_path / "heedful.db"
    rng = random.Random(7)
    with opened(path) as database:
        asyncio.run(SqliteStore(database).put("notes", [new_entry("Say no.", kind="rule", id="e")]))
    printed: list[str] = []
    for turn in range(6):
        with child(ANSWERING, path) as one, child(MARKING, path) as other:
            for process in (one, other) if turn % 2 else (other, one):
                due = after(rng.randrange(1, 20))
                printed += killed_at(process, due)
        with opened(path) as database:
            journal, store = SqliteJournal(database), SqliteStore(database)
            evidence = [seen.decision for seen in asyncio.run(store.evidence("notes"))]
            reasons = [change.reason for change in asyncio.run(store.history("notes", "e"))]
            for line in printed:
                what, id = line.split(" ")
                if what == "decision":
                    assert asyncio.run(journal.find(id)).answer == "Not yes."
                elif what == "evidence":
                    assert evidence.count(id) == 2
                else:
                    assert reasons.count(id) == 1
    assert {line.split(" ")[0] for line in printed} == {"decision", "evidence", "mark"}


def test_a_store_that_was_killed_can_be_read_without_heedful(tmp_path: Path) -> None:
    path = tmp_path / "heedful.db"
    with child(ANSWERING, path) as answering:
        killed_at(answering, lambda line: line.startswith("evidence"))
    with closing(sqlite3.connect(path)) as connection:
        records = connection.execute("SELECT record FROM decisions").fetchall()
    assert all(json.loads(record)["answer"] == "Not yes." for (record,) in records)
    assert records


def test_a_new_store_that_another_process_is_just_making_is_waited_for(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "heedful.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with child(COMMANDING, "BEGIN 1", imports(file, path, "first")) as importing:
            read_until(importing, lambda line: line == "BEGIN 1")
            other.execute("COMMIT")
            printed = read_until(importing, lambda line: line == "the end")
    assert f"{ENTRIES} entries added to bank first" in printed


def test_feedback_through_the_command_line_loses_nothing_and_counts_nothing_twice_when_killed() -> None:
    script = Path(__file__).parents[1] / "benchmarks" / "feedback_crash.py"
    words = [sys.executable, str(script), "--decisions", "60", "--lines", "60", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    counted = json.loads(done.stdout)
    assert (counted.pop("decisions"), counted.pop("kills") > 2) == (60, True)
    assert counted.pop("feedback_acknowledged") > 50
    assert set(counted.values()) == {0}, counted
