"""Feedback through the command line under kill -9: nothing acknowledged is lost, nothing counts twice.

A child process answers questions and sends feedback on each answer with `heedful feedback`, most of it twice.
It is killed at random moments and started again, and then sends feedback again that it may have sent before.

usage: python benchmarks/feedback_crash.py [--json] [--decisions 10000] [--lines 400] [--seed 0]
"""

import argparse
import asyncio
import contextlib
import io
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from heedful import (
    Controller,
    Database,
    MemoryBank,
    MemorySource,
    ScriptedModel,
    SqliteJournal,
    SqliteStore,
    Task,
    arms,
    new_entry,
)

NOTE = new_entry("Every answer is no.", kind="rule", id="no")


def child(path: str, begin: int, end: int) -> None:
    """Answer and give feedback; print a line after each write that the store acknowledged."""
    journal = SqliteJournal(Database(path))
    controller = Controller(
        model=ScriptedModel(script=lambda prompt: (f"{NOTE.text in prompt.messages[-1].content}", -0.5)),
        policy=arms.gate("notes", 0.0),
        sources={"notes": MemorySource(bank=MemoryBank("notes", [NOTE], method="bm25"))},
        journal=journal,
        explore=0.5,
    )
    for recent in asyncio.run(journal.recent(3)):  # sent before the kill, perhaps without an acknowledgement
        send(path, recent.id, int(recent.task.question.split()[2]))
    for place in range(begin, end):
        outcome = controller.answer_sync(Task(question=f"Is answer {place} yes?"))
        assert not outcome.faults, outcome.faults
        print("decision", outcome.decision, flush=True)
        send(path, outcome.decision, place)
    print("the end", flush=True)


def send(path: str, decision: str, place: int) -> None:
    """The same feedback twice, of a kind that depends on the place."""
    kind = (["--answer", "True"], ["--prefer", "memory"], ["--right"])[place % 3]
    for _ in range(2):
        command("feedback", decision, *kind, "--store", path)
        print("feedback", decision, flush=True)


def command(*words: str) -> None:
    """Run the command line in this process; its output is not the child's."""
    from heedful.cli.main import run

    sys.argv = ["heedful", *words]
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            run()
        except SystemExit as ended:
            if ended.code:
                raise


def run_until_killed(path: Path, begin: int, end: int, lines: int, rng: random.Random) -> list[str]:
    """The lines that the child printed before it was killed."""
    words = [sys.executable, __file__, "--child", str(path), str(begin), str(end)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = []
        for _ in range(rng.randrange(1, lines)):
            line = process.stdout.readline()
            if not line or line == "the end\n":
                break
            printed.append(line.rstrip("\n"))
        time.sleep(rng.random() * 0.02)
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().split("\n")[:-1]
        code = process.wait()
    if code not in (0, -signal.SIGKILL):
        raise SystemExit(f"the child failed with {code}")
    return [*printed, *(line for line in rest if line != "the end")]


def measure(decisions: int, lines: int, seed: int) -> dict[str, int]:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "heedful.db"
        acknowledged: Counter[str] = Counter()
        decided: list[str] = []
        kills = 0
        while len(decided) < decisions:
            printed = run_until_killed(path, len(decided), decisions, lines, rng)
            decided += [line.split(" ")[1] for line in printed if line.startswith("decision")]
            acknowledged.update(line.split(" ")[1] for line in printed if line.startswith("feedback"))
            kills += 1
        return {"decisions": len(decided), "kills": kills, **checked(path, decided, acknowledged)}


def checked(path: Path, decided: list[str], acknowledged: Counter[str]) -> dict[str, int]:
    """What is in the store, against what was acknowledged."""
    database = Database(path)
    with database.reading() as connection:
        (integrity,) = connection.execute("PRAGMA integrity_check").fetchone()
        rows = connection.execute("SELECT id, record FROM decisions").fetchall()
        recorded = {row["id"]: json.loads(row["record"]) for row in rows}
        feedback = Counter(row["decision"] for row in connection.execute("SELECT decision FROM feedback"))
        begun = {row["decision"] for row in connection.execute("SELECT decision FROM trials")}
    evidence = Counter(seen.decision for seen in asyncio.run(SqliteStore(database).evidence("notes")))
    database.close()
    in_trial = {id for id, record in recorded.items() if record["trial"] is not None}
    return {
        "damaged": int(integrity != "ok"),
        "decisions_lost": sum(id not in recorded for id in decided),
        "coins_lost": len(in_trial - begun),
        "feedback_lost": sum(not feedback[id] for id in acknowledged),
        "feedback_twice": sum(count > 1 for count in feedback.values()),
        "evidence_twice": sum(count > 1 for count in evidence.values()),
        "evidence_without_feedback": sum(not feedback[id] for id in evidence),
        "feedback_acknowledged": len(acknowledged),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--decisions", type=int, default=10_000)
    parser.add_argument("--lines", type=int, default=400, help="print at most this many lines before a kill")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child[0], int(given.child[1]), int(given.child[2]))
        return
    counted = measure(given.decisions, given.lines, given.seed)
    print(json.dumps(counted) if given.json else "\n".join(f"{k:<26} {v}" for k, v in counted.items()))


if __name__ == "__main__":
    main()
