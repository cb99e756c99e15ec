"""How long does each page of the dashboard take, with many decisions in the store?

usage: python -m benchmarks.dashboard [--decisions 100000] [--json]

Run it from a clone of the repository, with the extra `dev`: the decisions are the made-up ones of the tests.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.dashboard.conftest import client_of, view_of
from tests.dashboard.made_up import DAY, fill

from heedful import Database

PAGES = {
    "today": "/?window=week",
    "memory": "/memory",
    "decisions": "/decisions",
    "last page": "/decisions?page={last}",
    "search without a match": "/decisions?q=zebra",
    "entry without a match": "/decisions?entry=zebra",
    "decision": "/decisions/last",
    "policy": "/policy",
}
ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--decisions", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        file = Path(folder) / "made-up.db"
        fill(file, options.decisions, span=7 * DAY)
        database = Database(file)
        took = {name: seconds(database, path, options.decisions) for name, path in PAGES.items()}
        database.close()
    if options.json:
        print(json.dumps({"decisions": options.decisions, "seconds": took}))
        return
    print(f"{options.decisions:,} decisions; median of {ROUNDS} requests")
    for name, median in took.items():
        print(f"{name:24} {1000 * median:6.0f} ms")


def seconds(database: Database, path: str, decisions: int) -> float:
    client, times = client_of(view_of(database)), []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        response = client.get(path.format(last=decisions // 25))
        times.append(time.perf_counter() - start)
        assert response.status_code == 200, response.text
    return statistics.median(times)


if __name__ == "__main__":
    main()
