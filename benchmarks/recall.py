"""Recall by meaning at several sizes: latency, recall@5 against exact search, build time and memory.

usage: python benchmarks/recall.py [--sizes 10000,100000] [--queries 100] [--postgres URL]
       [--mem0 PYTHON] [--json]

The vectors are made up: 384 numbers around 3,000 topics, which lie in 96 dimensions; entries of a topic
differ in 24 of them and by a little noise in all. Queries are drawn in the same way. Every system gets the
same vectors and queries, in a process of its own. Times include reading the entries that are recalled, but
not embedding the query. On a machine that does other work, compare `cpu_ms`, the CPU time per query, or give
`--nice -20` as root: it holds while a system searches, and not while it imports.

`--postgres` names an empty database with pgvector, for heedful's store with its HNSW index.

`--mem0` names the Python of an environment with `mem0ai`; its local qdrant is searched through mem0's
vector store. That store commits each entry to the disk alone, at 7 to 27 ms each here; the benchmark
switches off the waiting for the disk, or its import would take hours. A system whose import is not finished
after `--patience` seconds, or that needs more than `--memory` MB, gives up and says how far it came.
"""

import argparse
import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

WIDTH, TOPICS, CORE, LIMIT = 384, 3000, 96, 5


def clustered(count, seed):
    """Unit vectors around topics; they vary in a few directions more than in others."""
    fixed = np.random.default_rng(99)
    topics = fixed.standard_normal((TOPICS, CORE), dtype=np.float32)
    basis = fixed.standard_normal((CORE, WIDTH), dtype=np.float32) / np.sqrt(WIDTH)
    rng = np.random.default_rng(seed)
    vectors = np.empty((count, WIDTH), np.float32)
    for start in range(0, count, 50_000):
        part = min(50_000, count - start)
        near = rng.standard_normal((part, CORE), dtype=np.float32) * (np.arange(CORE) < CORE // 4) * 1.6
        mixed = (topics[rng.integers(0, TOPICS, part)] + near) @ basis / np.sqrt(CORE)
        mixed += rng.standard_normal((part, WIDTH), dtype=np.float32) * 0.2 / np.sqrt(WIDTH)
        vectors[start : start + part] = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
    return vectors


class Numbered:
    """Embeds the texts `entry N` and `query N` as the made-up vectors."""

    def __init__(self, entries, queries):
        self.parts = {"entry": entries, "query": queries}

    def embed(self, texts):
        return np.stack([self.parts[kind][int(n)] for kind, n in map(str.split, texts)])


def heedful(entries, queries, folder, limits):
    """Import and store the vectors; recall exactly (from memory if the bank is small enough to be held
    there by default, or else from the store) and then with the index."""
    from heedful import Database, MemoryBank, SqliteStore, new_entry
    from heedful.memory.large import LargeBank
    from heedful.memory.stored import INDEX_ABOVE
    from heedful.memory.vectors import VectorCache

    store, loop = SqliteStore(Database(folder / "store.db")), asyncio.new_event_loop()
    embedder = Numbered(entries, queries)

    def bank():
        return LargeBank(VectorCache(store.database), "b", threshold=-1.0, embedder=lambda: embedder)

    def searching(bank):
        def search(n):
            recalls = loop.run_until_complete(bank.recall(f"query {n}", limit=LIMIT))
            return [int(recall.entry.id) for recall in recalls]

        return search

    started = time.perf_counter()
    for first in range(0, len(entries), 5000):
        part = range(first, min(first + 5000, len(entries)))
        loop.run_until_complete(
            store.put("b", [new_entry(f"entry {n}", kind="fact", id=str(n)) for n in part])
        )
    imported = time.perf_counter() - started
    exact = bank()
    exact.follow()
    stored = time.perf_counter() - started
    small = len(entries) <= INDEX_ABOVE
    held = MemoryBank("b", exact.entries(), threshold=-1.0, embedder=lambda: embedder) if small else exact
    yield "heedful exact", searching(held), stored, {"import_s": round(imported, 1)}
    del held
    started = time.perf_counter()
    exact.extend(threads=os.cpu_count() or 1)
    indexed = time.perf_counter() - started
    started = time.perf_counter()
    again = bank()
    again.follow()
    opened = time.perf_counter() - started
    del exact
    size = sum(file.stat().st_size for file in (folder / "store.db-vectors").iterdir())
    extra = {"index_s": round(indexed, 1), "open_s": round(opened, 2), "files_mb": round(size / 1e6)}
    yield "heedful index", searching(again), stored + indexed, extra


class Unsynced(sqlite3.Connection):
    """A connection that does not wait for the disk."""

    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        self.execute("PRAGMA synchronous = OFF")


def mem0(entries, queries, folder, limits):
    """mem0's vector store over a local qdrant."""
    connect = sqlite3.connect
    sqlite3.connect = lambda *given, **named: connect(*given, factory=Unsynced, **named)
    from mem0.vector_stores.qdrant import Qdrant

    started = time.perf_counter()
    store = Qdrant("bench", WIDTH, path=str(folder / "qdrant"), on_disk=True)
    for first in range(0, len(entries), 2000):
        limits.check(first, time.perf_counter() - started)
        part = range(first, min(first + 2000, len(entries)))
        store.insert(
            [entries[n].tolist() for n in part],
            payloads=[{"data": f"entry {n}"} for n in part],
            ids=list(part),
        )
    built = time.perf_counter() - started

    def search(n):
        return [int(hit.id) for hit in store.search(f"query {n}", queries[n].tolist(), top_k=LIMIT)]

    yield "mem0", search, built, {}


def postgres(entries, queries, folder, limits):
    """heedful's store in Postgres with pgvector's HNSW, which is built after the import, as
    docs/postgres.md advises; the memory of its server is not counted."""
    import psycopg

    from heedful import new_entry
    from heedful.memory.postgres.recall import PostgresBank
    from heedful.memory.storage import open_storage

    store, loop = open_storage(limits.postgres), asyncio.new_event_loop()
    name, embedder = f"recall-{os.getpid()}", Numbered(entries, queries)
    owner = psycopg.connect(limits.postgres, autocommit=True)
    if owner.execute("SELECT 1 FROM banks WHERE bank NOT LIKE 'recall-%'").fetchone():
        sys.exit("the database is not empty: give --postgres one of its own")
    owner.execute("TRUNCATE heads, entries, vectors")  # of the size before
    owner.execute("DROP INDEX heads_by_vector")
    started = time.perf_counter()
    for first in range(0, len(entries), 5000):
        part = range(first, min(first + 5000, len(entries)))
        loop.run_until_complete(
            store.put(name, [new_entry(f"entry {n}", kind="fact", id=str(n)) for n in part])
        )
    bank = PostgresBank(store.database, name, threshold=-1.0, embedder=lambda: embedder)
    bank.follow()
    stored = time.perf_counter() - started
    owner.execute("SET maintenance_work_mem = '3GB'")
    owner.execute("CREATE INDEX heads_by_vector ON heads USING hnsw (vector vector_ip_ops)")
    owner.execute("VACUUM ANALYZE heads")
    built = time.perf_counter() - started
    size = owner.execute("SELECT pg_relation_size('heads_by_vector')").fetchone()[0]

    def search(n):
        recalls = loop.run_until_complete(bank.recall(f"query {n}", limit=LIMIT))
        return [int(recall.entry.id) for recall in recalls]

    extra = {"index_s": round(built - stored, 1), "index_mb": round(size / 1e6)}
    yield "postgres", search, built, extra


@dataclass(frozen=True)
class Limits:
    """How long an import may take, how much memory the process may use, and which Postgres."""

    patience: float
    memory: float
    postgres: str

    def check(self, imported, seconds):
        if seconds > self.patience:
            sys.exit(f"gave up after {seconds:.0f} s with {imported} entries imported")
        if resident() > self.memory:
            sys.exit(f"gave up at {resident():.0f} MB of memory with {imported} entries imported")


SYSTEMS = {"heedful": heedful, "postgres": postgres, "mem0": mem0}


def measure(system, size, given):
    """A system at one size, in this process: name -> numbers."""
    entries, queries = clustered(size, 0), clustered(given.queries, 7)
    truth = [set(np.argpartition(-(entries @ query), LIMIT)[:LIMIT].tolist()) for query in queries]
    before, limits = resident(), Limits(given.patience, given.memory, given.postgres)
    with tempfile.TemporaryDirectory() as folder:
        for name, search, built, extra in SYSTEMS[system](entries, queries, Path(folder), limits):
            set_niceness(given.nice)
            search(0)
            times, hits, worked = [], 0, time.process_time()
            for n in range(given.queries):
                started = time.perf_counter()
                recalled = search(n)
                times.append(1000 * (time.perf_counter() - started))
                hits += len(truth[n] & set(recalled))
            worked = time.process_time() - worked
            set_niceness(0)
            yield (
                name,
                {
                    "p50_ms": round(float(np.percentile(times, 50)), 2),
                    "p99_ms": round(float(np.percentile(times, 99)), 2),
                    "recall_at_5": round(hits / (LIMIT * given.queries), 4),
                    "cpu_ms": round(1000 * worked / given.queries, 2),
                    "build_s": round(built, 1),
                    "rss_mb": round(resident() - before),
                    **extra,
                },
            )


def set_niceness(nice):
    """Of every thread of this process and of its session (Linux); below 0 needs root."""
    if nice is not None:
        Path("/proc/self/autogroup").write_text(str(nice))
        for thread in Path("/proc/self/task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(thread.name), nice)


def resident():
    """Memory of this process in MB, with the parts of mapped files that it touched (Linux)."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


def in_process(system, size, given):
    """Measure in a process of its own; results appear as they are measured."""
    python = given.mem0 if system == "mem0" else sys.executable
    call = [python, __file__, "--one", system, "--size", str(size), *sys.argv[1:]]
    environment = {**os.environ, "MEM0_TELEMETRY": "False"}
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    run = subprocess.Popen(call, **piped, env=environment, start_new_session=True)
    for line in run.stdout:
        print(size, line.strip(), file=sys.stderr, flush=True)
        yield json.loads(line)
    errors = run.stderr.read().strip().splitlines()
    if run.wait():
        yield system, {"error": errors[-1]}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="10000,100000")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--systems", default="heedful,postgres,mem0")
    parser.add_argument("--mem0", help="Python with mem0ai")
    parser.add_argument("--postgres", help="URL of an empty database with pgvector")
    parser.add_argument("--patience", type=float, default=3600.0, help="seconds for an import of mem0")
    parser.add_argument("--memory", type=float, default=5500.0, help="MB for the process of mem0")
    parser.add_argument("--nice", type=int, help="niceness while searching, beside other work")
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.one:
        for named in measure(given.one, given.size, given):
            print(json.dumps(named), flush=True)
        return
    systems = [name for name in given.systems.split(",") if getattr(given, name, True)]
    results = {
        size: dict(named for system in systems for named in in_process(system, size, given))
        for size in map(int, given.sizes.split(","))
    }
    if given.json:
        print(json.dumps({"sizes": results}, indent=1))


if __name__ == "__main__":
    main()
