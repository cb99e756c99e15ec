"""A server under load while second passes and store calls fail: who gets an answer, and what leaks.

usage: python -m benchmarks.soak [--requests N] [--concurrency N] [--seconds S] [--json]

The upstream fails 30% of the second passes in every way that `tests/faulty.py` knows, and 5% of the first
ones. The store fails 10% of its calls: it raises, hangs, is locked by another connection or is read-only.
Exit code 1 if an answer is lost, a decision is missing, or connections, tasks or memory leak.
"""

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
from tests import faulty
from tests.faulty_store import STORE_FAULTS, FaultyDatabase, StoreFault
from tests.serve.serving import make_service

from heedful import Database, SqliteJournal, SqliteStore, new_entry
from heedful.memory.stored import StoredBank
from heedful.serve.admission import ServeLimits
from heedful.serve.app import make_app
from heedful.serve.served_policies import ServedPolicy
from heedful.serve.server import Address, listen, run

FAILING_PASSES, FAILING_STORE_CALLS, FAILING_FIRST_PASSES = 0.3, 0.1, 0.05
FEEDBACK_TRIES = 5
PATIENCE = 5.0
"""Longer than an answer takes on a busy machine; a pass or a store that hangs costs this time."""
SECOND_PASS_FAULTS: dict[str, faulty.Play] = {
    "status 500": faulty.fails(500),
    "status 429": faulty.fails(429, retry_after="1"),
    "not JSON": faulty.body(b"not JSON"),
    "no choices": faulty.sends({"choices": []}),
    "hangs": faulty.hangs,
    "stalls": faulty.stalls,
    "truncates": faulty.truncates,
    "cuts the stream": faulty.cuts_the_stream,
    "hangs up": faulty.hangs_up,
    "babbles": faulty.babbles,
}
NOTE = new_entry("Every shelf holds nails.", kind="fact", id="nails")
STOPPED = (0, -signal.SIGTERM)
"""How a server ends that was asked to stop."""
MOST_GROWTH = 1.10
"""Largest over smallest memory in the second half of a run that does not leak."""


def drawn(number: int, what: str) -> random.Random:
    """Chance that depends on the number of a request only."""
    return random.Random(f"{what} {number}")


def first_fails(number: int) -> bool:
    return drawn(number, "first").random() < FAILING_FIRST_PASSES


def upstream_script(request: faulty.Request) -> faulty.Play:
    """First passes are unsure two times out of three; second passes fail as drawn."""
    said = json.dumps(request.body["messages"])
    number = int(re.findall(r"shelf (\d+)", said)[-1])
    if NOTE.text not in said:
        if first_fails(number):
            return faulty.fails(418, "the upstream's own words")
        return faulty.answers(f"rope {number}", -0.9 if number % 3 else -0.1)
    chance = drawn(number, "second")
    if chance.random() < FAILING_PASSES:
        return SECOND_PASS_FAULTS[chance.choice(list(SECOND_PASS_FAULTS))]
    return faulty.answers(f"nails {number}", -0.1)


def store_faults(seed: int) -> Iterator[StoreFault | None]:
    chance = random.Random(seed)
    while True:
        yield chance.choice(STORE_FAULTS) if chance.random() < FAILING_STORE_CALLS else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The server's process at one moment."""

    answered: int
    rss_mb: float
    tasks: int
    threads: int
    connections: int
    in_progress: int


def serve(upstream: str, folder: Path) -> None:
    """The server's process: a real server whose store fails; samples of it go to a file."""
    with_store = Database(folder / "heedful.db")
    asyncio.run(SqliteStore(with_store).put("shed", [NOTE]))
    with_store.close()
    database = FaultyDatabase(folder / "heedful.db", store_faults(1))
    store, ticks = SqliteStore(database), count()
    # a clock that always says it is time makes every recall ask the store
    bank = StoredBank(store, "shed", method="bm25", clock=lambda: float(next(ticks)))
    service = make_service(
        upstream,
        folder,
        store=store,
        bank=bank,
        limits=ServeLimits(seconds=60.0),
        served=lambda controller: [
            ServedPolicy(
                name="default",
                controller=replace(controller, patience=PATIENCE, explore=0.2),
                banks=("shed",),
            )
        ],
    )
    service.journal.store_seconds = 2.0
    address = Address(host="127.0.0.1", port=0, ready_file=folder / "port")
    tasks: list[asyncio.Task[None]] = []

    async def watch() -> None:
        with (folder / "samples.jsonl").open("w") as file:
            while True:
                requests = sum(n for (name, *_), n in service.metrics.counts.items() if name == "requests")
                sample = sample_now(requests, service.admission.running.total())
                file.write(f"{json.dumps(asdict(sample))}\n")
                file.flush()
                (folder / "store.json").write_text(json.dumps(database.calls))
                await asyncio.sleep(0.2)

    app = make_app(service)
    listening = listen(address)
    run(app, service.shelf, address, listening, lambda port: tasks.append(asyncio.create_task(watch())))


def sample_now(answered: int, in_progress: int) -> Sample:
    status = dict(re.findall(r"^(\w+):\s+(\d+)", Path("/proc/self/status").read_text(), re.MULTILINE))
    links = [os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return Sample(
        answered=answered,
        rss_mb=int(status["VmRSS"]) / 1024,
        tasks=len(asyncio.all_tasks()),
        threads=int(status["Threads"]),
        connections=sum(link.startswith("socket:") for link in links),
        in_progress=in_progress,
    )


@dataclass(slots=True)
class Tally:
    """What the clients saw."""

    kept: int = 0
    replaced: int = 0
    upstream_errors: int = 0
    """The first pass failed, and the client got the upstream's own error."""
    lost: list[str] = field(default_factory=list)
    """Requests whose first pass succeeded, without the right reply."""
    decisions: set[str] = field(default_factory=set)
    acknowledged: int = 0
    """Decisions whose feedback the server acknowledged."""
    refused: Counter[str] = field(default_factory=Counter)
    """Why the failing store did not take feedback."""


async def ask_all(url: str, requests: int, concurrency: int, deadline: float) -> Tally:
    tally, numbers = Tally(), iter(range(requests))
    timeout = aiohttp.ClientTimeout(total=120)
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:

        async def worker() -> None:
            for number in numbers:
                if time.monotonic() > deadline:
                    return
                await ask(session, url, number, tally)

        await asyncio.gather(*(worker() for _ in range(concurrency)))
    return tally


async def ask(session: aiohttp.ClientSession, url: str, number: int, tally: Tally) -> None:
    question = f"What is on shelf {number} in the shed?"
    body = {"model": "m", "messages": [{"role": "user", "content": question}]}
    try:
        async with session.post(f"{url}/chat/completions", json=body) as response:
            reply, status, headers = await response.json(), response.status, response.headers
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        tally.lost.append(f"{number}: {type(error).__name__}")
        return
    if first_fails(number):
        right = status == 418 and reply["error"]["message"] == "the upstream's own words"
        tally.upstream_errors += right
        tally.lost += [] if right else [f"{number}: {status} instead of the upstream's error"]
        return
    answer = reply["choices"][0]["message"]["content"] if status == 200 else f"status {status}"
    tally.kept += answer == f"rope {number}"
    tally.replaced += answer == f"nails {number}"
    if answer not in (f"rope {number}", f"nails {number}"):
        tally.lost.append(f"{number}: {answer}")
        return
    tally.decisions.add(headers["x-heedful-decision"])
    if number % 10 == 0:
        await grade(session, url, headers["x-heedful-decision"], tally)


async def grade(session: aiohttp.ClientSession, url: str, decision: str, tally: Tally) -> None:
    """Give feedback, again if the store fails: sent twice it counts once."""
    for _ in range(FEEDBACK_TRIES):
        async with session.post(
            f"{url}/feedback", json={"decision": decision, "answer": "nails"}
        ) as response:
            if response.status == 200:
                tally.acknowledged += 1
                return
            message = (await response.json())["error"]["message"]
            tally.refused[f"{response.status} {message.rpartition(': ')[2]}"] += 1


def soak(folder: Path, requests: int, concurrency: int, seconds: float) -> dict[str, Any]:
    """Run upstream, server and clients; the measured values."""
    with faulty.FaultyServer(upstream_script) as upstream:
        command = [sys.executable, "-m", "benchmarks.soak", "--serve", upstream.url, "--folder", str(folder)]
        server = subprocess.Popen(command, stderr=(folder / "log").open("wb"))
        try:
            url = f"http://127.0.0.1:{wait_for(folder / 'port', server)}/v1"
            start = time.monotonic()
            tally = asyncio.run(ask_all(url, requests, concurrency, start + seconds))
            took = time.monotonic() - start
            last = settled(folder / "samples.jsonl")
        finally:
            server.send_signal(signal.SIGTERM)
            code = server.wait(timeout=60)
    samples = read_samples(folder / "samples.jsonl")
    half = [s.rss_mb for s in samples if s.answered >= samples[-1].answered / 2]
    stored = {d.id for d in asyncio.run(SqliteJournal(Database(folder / "heedful.db")).recent(10**6))}
    return {
        "requests": tally.kept + tally.replaced + tally.upstream_errors + len(tally.lost),
        "seconds": round(took, 1),
        "kept": tally.kept,
        "replaced": tally.replaced,
        "upstream_errors": tally.upstream_errors,
        "lost": tally.lost,
        "second_passes_failed": failed_passes(upstream.requests),
        "store_calls": json.loads((folder / "store.json").read_text()),
        "feedback": {"acknowledged": tally.acknowledged, "refused": dict(tally.refused)},
        "decisions": {"answered": len(tally.decisions), "missing": len(tally.decisions - stored)},
        "rss_mb": {"half": half[0], "end": half[-1], "least": min(half), "most": max(half)},
        "growth": round(max(half) / min(half), 3),
        "start": asdict(samples[0]),
        "end": asdict(last),
        "tracebacks": (folder / "log").read_text().count("internal error"),
        "exit_code": code,
    }


def failed_passes(requests: Sequence[faulty.Request]) -> dict[str, int]:
    """How many second passes failed in each way."""
    plays: dict[Callable[..., None], str] = {play: name for name, play in SECOND_PASS_FAULTS.items()}
    return dict(Counter(plays[play] for one in requests if (play := upstream_script(one)) in plays))


def problems_of(result: dict[str, Any], concurrency: int) -> list[str]:
    """What must not happen."""
    start, end = result["start"], result["end"]
    checks = {
        f"{len(result['lost'])} answers are lost": bool(result["lost"]),
        f"{result['decisions']['missing']} decisions are missing": result["decisions"]["missing"] > 0,
        f"memory grows by {result['growth']}": result["growth"] > MOST_GROWTH,
        f"{end['tasks']} tasks are left of {start['tasks']}": end["tasks"] > start["tasks"] + 2,
        f"{end['connections']} connections are open": end["connections"] > start["connections"] + concurrency,
        f"{result['tracebacks']} internal errors are logged": result["tracebacks"] > 0,
        f"the server ends with {result['exit_code']}": result["exit_code"] not in STOPPED,
    }
    return [problem for problem, happened in checks.items() if happened]


def wait_for(file: Path, server: "subprocess.Popen[bytes]") -> int:
    for _ in range(600):
        if file.exists():
            return int(file.read_text())
        if server.poll() is not None:
            raise SystemExit("the server ended before it was ready")
        time.sleep(0.1)
    raise SystemExit("the server is not ready after 60 seconds")


def settled(file: Path) -> Sample:
    """The first sample without a request in progress, or the last one after some seconds."""
    for _ in range(50):
        time.sleep(0.2)
        last = read_samples(file)[-1]
        if last.in_progress == 0 and last.tasks <= read_samples(file)[0].tasks + 2:
            break
    return last


def read_samples(file: Path) -> list[Sample]:
    lines = [line for line in file.read_text().split("\n")[:-1] if line]
    return [Sample(**json.loads(line)) for line in lines]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--concurrency", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=900.0, help="no request is begun after this time")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.folder)
        return 0
    with TemporaryDirectory() as folder:
        result = soak(Path(folder), options.requests, options.concurrency, options.seconds)
    result["problems"] = problems_of(result, options.concurrency)
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        for name, value in result.items():
            print(f"{name:22} {value}")
    return 1 if result["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
