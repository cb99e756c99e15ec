"""Bytes on disk per decision and per entry, in a SQLite file or in Postgres.

usage: python benchmarks/store_size.py [--decisions 2000] [--entries 10000] [--postgres URL] [--json]

A scripted model answers with 40 words; every question consults memory and recalls 5 entries of 12 words, and
every decision gets one feedback. Vectors have 384 numbers. Postgres counts tables with their indexes, in a
database that must be empty.
"""

import argparse
import asyncio
import json
import sqlite3
import tempfile
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from cost import WordSums, made_up_words, sentence

from heedful import Controller, MemoryBank, MemorySource, ScriptedModel, Task, arms, new_entry
from heedful.memory.storage import Storage, open_storage
from heedful.records import Feedback

PART = 1000


def answering(store: Storage, decisions: int) -> None:
    notes = [new_entry(sentence(n), kind="fact", id=str(n)) for n in range(200)]
    said = " ".join(made_up_words(n) for n in range(4))
    controller = Controller(
        model=ScriptedModel(script=lambda prompt: (said, -0.5)),
        policy=arms.gate("notes", 0.0),
        sources={"notes": MemorySource(bank=MemoryBank("notes", notes, method="bm25"))},
        journal=store.journal,
    )
    for number in range(decisions):
        asked = f"What is on shelf {number % 200}? {made_up_words(number)}"
        outcome = controller.answer_sync(Task(question=asked, id=f"t{number}"))
        assert outcome.candidates
        given = Feedback(decision=outcome.decision, kind="preference", value="memory")
        asyncio.run(store.feedback.give(given))


def filling(store: Storage, entries: int) -> None:
    for first in range(0, entries, PART):
        numbers = range(first, min(first + PART, entries))
        asyncio.run(store.put("b", [new_entry(sentence(n), kind="fact", id=str(n)) for n in numbers]))


def embedding(store: Storage) -> None:
    """Vectors, and the index where the store has one."""
    bank = store.open_large("b", threshold=0.0, embedder=WordSums, above=0)
    assert bank is not None
    if hasattr(bank, "extend"):
        bank.extend()


def size(place: str) -> int:
    if place.startswith("postgres"):
        import psycopg

        with psycopg.connect(place, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            [(found,)] = connection.execute("SELECT pg_database_size(current_database())").fetchall()
        return int(found)
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    file = Path(place)
    vectors = Path(f"{place}-vectors")
    beside = [*file.parent.glob(f"{file.name}*"), *(vectors.iterdir() if vectors.exists() else ())]
    return sum(part.stat().st_size for part in beside if part.is_file())


def measure(place: str, decisions: int, entries: int) -> dict[str, float]:
    store = open_storage(place)
    sizes = [size(place)]
    for step in (
        lambda: answering(store, decisions),
        lambda: filling(store, entries),
        lambda: embedding(store),
    ):
        step()
        sizes.append(size(place))
    grown = [after - before for before, after in pairwise(sizes)]
    return {
        "bytes_per_decision": round(grown[0] / decisions),
        "bytes_per_entry": round(grown[1] / entries),
        "bytes_per_vector": round(grown[2] / entries),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--decisions", type=int, default=2000)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--postgres")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = {"sqlite": measure(f"{folder}/store.db", given.decisions, given.entries)}
    if given.postgres:
        found["postgres"] = measure(given.postgres, given.decisions, given.entries)
    print(json.dumps(found, indent=1) if given.json else found)


if __name__ == "__main__":
    main()
