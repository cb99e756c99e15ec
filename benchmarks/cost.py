"""How cost grows: CPU time and memory of ask, record, fit, report and govern at 1, 10 and 100 times the data.

usage: python benchmarks/cost.py [--json] [--factors 1,10,100] [--only ask,govern]

A scripted model answers at once, so the numbers are heedful's own. Each command runs in a process of its own
per size. Base sizes: 1,000 entries (open, ask), 40 rows per side with a bank of 50 entries (record, fit,
lock and test, report) and 1,000 observations on 100 entries (govern). `open` is one question to a bank that
is not open yet but has its vectors; `ask` is 100 questions to an open bank. Vectors are sums of a fixed
random vector per word.

`exponent` is the slope of log(time) over log(size) between the two largest sizes: 1 is linear. A start-up
cost hides growth at small sizes, so the largest sizes count. n log n has about 1.1 to 1.2 at these sizes.
"""

import argparse
import asyncio
import json
import math
import random
import re
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

from heedful import Controller, Database, MemorySource, ScriptedModel, SqliteStore, Task, arms, new_entry
from heedful.governance.live import govern_live
from heedful.memory.stored import StoredBank
from heedful.protocol.setup import StudySetup, prepare
from heedful.protocol.workflow import fit_study, lock_study, open_test_side, record
from heedful.protocol.workspace import Workspace, open_workspace
from heedful.report.write import write_report
from heedful.types import Evidence, Prompt

ENTRIES, ROWS, OBSERVATIONS = 1000, 40, 1000
SHELVES = 50
"""The bank of the study keeps this size."""
QUESTIONS = 100
STUDY = """
name = "shelves"
[questions]
fit = "fit.jsonl"
test = "test.jsonl"
[sources.notes]
bank = "notes.txt"
recall = "bm25"
[fit]
signals = ["mean"]
families = ["gate", "choose"]
"""
Step = Callable[[], object]


class WordSums:
    """A stand-in for an encoder: the sum of a fixed random vector per word."""

    def __init__(self) -> None:
        self._words: dict[str, np.ndarray] = {}

    def embed(self, texts: list[str]) -> np.ndarray:
        sums = np.stack([sum(map(self._word, text.split())) for text in texts])
        return (sums / np.linalg.norm(sums, axis=1, keepdims=True)).astype(np.float32)

    def _word(self, word: str) -> np.ndarray:
        if word not in self._words:
            rng = np.random.default_rng(zlib.crc32(word.encode()))
            self._words[word] = rng.standard_normal(384, dtype=np.float32)
        return self._words[word]


def clerk() -> ScriptedModel:
    """Reads the note of a shelf; without it, it is right now and then, and less sure."""

    def reply(prompt: Prompt) -> tuple[str, float]:
        text = prompt.messages[-1].content
        [shelf] = re.findall(r"on shelf (\d+)", text)[:1]
        draw = random.Random(text.partition("It was")[2])
        right = f"Shelf {shelf} holds" in text or draw.random() < 0.4
        return f"item{int(shelf) % 7}" if right else "item9", -0.2 - 0.5 * draw.random() - 0.4 * (not right)

    return ScriptedModel(script=reply)


def sentence(number: int) -> str:
    return f"Shelf {number} holds {made_up_words(number)}."


def question(number: int) -> str:
    """About one of the shelves, and different from all others, or it would count as a repeated one."""
    return f"What is on shelf {number % SHELVES}? It was asked with {made_up_words(number)}."


def made_up_words(number: int) -> str:
    draw = random.Random(number)
    return " ".join(f"w{draw.randrange(5000)}" for _ in range(10))


def filled(folder: Path, entries: int) -> SqliteStore:
    store = SqliteStore(Database(folder / "store.db"))
    for first in range(0, entries, 5000):
        numbers = range(first, min(first + 5000, entries))
        part = [new_entry(sentence(number), kind="fact", id=str(number)) for number in numbers]
        asyncio.run(store.put("notes", part))
    return store


def asking(folder: Path, entries: int) -> dict[str, Step]:
    """Open a bank in a store and ask; vectors are stored before."""
    encoder = WordSums()
    store = filled(folder, entries)

    def controller() -> Controller:
        bank = StoredBank(store, "notes", embedder=lambda: encoder, threshold=0.1, build_index=False)
        source = MemorySource(bank=bank)
        return Controller(model=clerk(), policy=arms.gate("notes", 0.0), sources={"notes": source})

    tasks = [Task(question=f"What is on shelf {number}?") for number in range(QUESTIONS)]
    controller().answer_sync(tasks[0])  # stores the vectors
    opened = controller()

    async def ask() -> None:
        for task in tasks:
            outcome = await opened.answer(task)
            assert outcome.candidates
            assert not outcome.faults

    return {"open": lambda: opened.answer_sync(tasks[0]), "ask": lambda: asyncio.run(ask())}


def studying(folder: Path, rows: int) -> dict[str, Step]:
    """A study of this many rows per side."""
    for side, first in (("fit", 0), ("test", rows)):
        asked = [
            {"id": f"s{n}", "question": question(n), "answer": f"item{n % SHELVES % 7}"}
            for n in range(first, first + rows)
        ]
        (folder / f"{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    notes = [f"Shelf {n} holds item{n % 7}." for n in range(SHELVES)]
    (folder / "notes.txt").write_text("\n".join(notes))
    (folder / "study.toml").write_text(STUDY)
    opened: list[tuple[Workspace, StudySetup]] = []

    def open_and_record() -> None:
        space = open_workspace(folder / "study.toml", folder / "out")
        opened.append((space, prepare(space.study, None)))
        asyncio.run(record(*opened[0], clerk(), "fit", lambda progress: None))

    return {
        "record": open_and_record,
        "fit": lambda: fit_study(*opened[0]),
        "lock and test": lambda: _test(opened[0]),
        "report": lambda: write_report(opened[0][0]),
    }


def _test(opened: tuple[Workspace, StudySetup]) -> None:
    asyncio.run(lock_study(*opened, clerk()))
    asyncio.run(open_test_side(*opened, clerk(), lambda progress: None))


def governing(folder: Path, observations: int) -> dict[str, Step]:
    """Judge entries by what was observed."""
    store = filled(folder, observations // 10)
    versions = {entry.id: entry.digest for entry in asyncio.run(store.entries("notes"))}
    draw = random.Random(0)
    observed = []
    for number in range(observations):
        entry = str(draw.randrange(len(versions)))
        utility = draw.choice((-1.0, 0.0, 0.0, 1.0, 1.0))
        observed.append(Evidence(entry=entry, version=versions[entry], task=f"t{number}", utility=utility))
    asyncio.run(store.observe("notes", observed))
    return {"govern": lambda: asyncio.run(govern_live(store, "notes"))}


GROUPS = {"ask": (asking, ENTRIES), "study": (studying, ROWS), "govern": (governing, OBSERVATIONS)}


def measure(group: str, factor: int) -> dict[str, dict[str, float]]:
    """Seconds of CPU and the peak of memory per step, in this process."""
    prepare_steps, base = GROUPS[group]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, step in prepare_steps(Path(folder), base * factor).items():
            Path("/proc/self/clear_refs").write_text("5")  # a new peak
            start = time.process_time()
            step()
            found[name] = {"size": base * factor, "cpu_s": time.process_time() - start, "peak_mb": peak_mb()}
    return found


def peak_mb() -> float:
    """The largest memory of this process since the last reset, in MB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def in_process(group: str, factor: int) -> dict[str, dict[str, float]]:
    call = [sys.executable, __file__, "--one", group, "--factors", str(factor)]
    run = subprocess.run(call, capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{group} at {factor}: {run.stderr}")
    return json.loads(run.stdout.splitlines()[-1])


def growth(points: list[dict[str, float]], key: str) -> dict[str, object]:
    """Ratios to the size before, and the slope between the last two sizes."""
    ratios = [round(b[key] / a[key], 2) for a, b in pairwise(points)]
    slope = math.log(points[-1][key] / points[-2][key]) / math.log(points[-1]["size"] / points[-2]["size"])
    return {"ratios": ratios, "exponent": round(slope, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--factors", default="1,10,100")
    parser.add_argument("--only", default=",".join(GROUPS), help="ask, study, govern")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    factors = [int(factor) for factor in given.factors.split(",")]
    if given.one:
        print(json.dumps(measure(given.one, factors[0])))
        return
    results = {}
    for group in given.only.split(","):
        measured = [in_process(group, factor) for factor in factors]
        for name in measured[0]:
            points = [steps[name] for steps in measured]
            results[name] = {
                "sizes": points,
                "time": growth(points, "cpu_s"),
                "memory": growth(points, "peak_mb"),
            }
            shown = "  ".join(f"{p['size']:,}: {p['cpu_s']:.3f} s {p['peak_mb']:.0f} MB" for p in points)
            slopes = f"exponents {results[name]['time']['exponent']}, {results[name]['memory']['exponent']}"
            print(f"{name:14} {shown}  {slopes}", file=sys.stderr, flush=True)
    if given.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
