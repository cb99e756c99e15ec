"""Import a large bank with the command line under kill -9: time, memory, and nothing lost.

usage: python benchmarks/importing.py [--entries 1000000] [--no-index] [--json]

`heedful bank import` is killed twice: when half of the entries are stored, and when half of their vectors
are. The third run must finish. The encoder is a stand-in, the sum of a fixed random vector per word, because
MiniLM takes hours for a million entries on two cores. `--no-index` leaves out building the index.
"""

import argparse
import json
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from cost import WordSums, sentence

ROW = 384 * 4


def child(file, store, index):
    """`heedful bank import` with the stand-in."""
    from heedful.cli import resources
    from heedful.cli.main import run
    from heedful.memory.large import LargeBank

    resources.open_minilm = WordSums
    if not index:
        LargeBank.due = False
    sys.argv = ["heedful", "bank", "import", file, "--bank", "b", "--store", store, "--json"]
    run()


def stored(store):
    """The number of entries that are committed."""
    if not store.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT coalesce(max(seq), 0) FROM entries").fetchone()[0]
    except sqlite3.Error:
        return 0


def vectors(store):
    """The number of rows that the vector file has room for."""
    files = store.with_name(f"{store.name}-vectors").glob("*.f32")
    return sum(file.stat().st_size for file in files) // ROW


def imported(file, store, given, reached):
    """Run the import; kill it when `reached` says so."""
    call = [sys.executable, __file__, "--child", str(file), str(store)]
    call += ["--no-index"] if given.no_index else []
    started, peak, said = time.perf_counter(), 0.0, store.with_name("said.txt")
    with said.open("w") as errors:
        run = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=errors, text=True)
        while run.poll() is None:
            time.sleep(0.25)
            peak = max(peak, own_mb(run.pid))
            if reached():
                run.send_signal(signal.SIGKILL)
                run.wait()
    return {
        "seconds": round(time.perf_counter() - started, 1),
        "peak_mb": round(peak),
        "exit": run.returncode,
        "stored": stored(store),
        "vectors": vectors(store),
        "last_progress": said.read_text().strip().splitlines()[-1:],
    }


def own_mb(pid):
    """The memory of a process in MB, without the pages of mapped files (Linux); 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon")), 0.0)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--no-index", action="store_true")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.child:
        child(*given.child, not given.no_index)
        return
    with tempfile.TemporaryDirectory() as folder:
        file, store = Path(folder) / "million.jsonl", Path(folder) / "store.db"
        with file.open("w") as lines:
            for n in range(given.entries):
                lines.write(json.dumps({"id": str(n), "text": sentence(n), "kind": "fact"}) + "\n")
        half = given.entries // 2
        conditions = (lambda: stored(store) > half, lambda: vectors(store) > half, lambda: False)
        runs = []
        for reached in conditions:
            runs.append(imported(file, store, given, reached))
            print(runs[-1], file=sys.stderr, flush=True)
        disk = {part.name: part.stat().st_size for part in sorted(Path(folder).rglob("store.db*"))}
        disk |= {part.name: part.stat().st_size for part in Path(f"{store}-vectors").iterdir()}
    found = {"entries": given.entries, "runs": runs, "disk": disk}
    print(json.dumps(found, indent=1) if given.json else found)


if __name__ == "__main__":
    main()
