"""Two servers on one Postgres, one of them killed again and again: what is lost, and what counts twice?

A client sends questions and feedback to both servers, feedback often to the other server than the question,
and a part of it twice. It tries again until the feedback is acknowledged. Then the evidence in Postgres is
compared with that of the same questions through a single server that nobody kills.

usage: PYTHONPATH=. python benchmarks/shared_store.py [--json] [--requests 20000] [--kills 8] [--at-once 16]

Run it from a clone of the repository, with the extra `dev`, which has a Postgres.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from proxy import UPSTREAM, free_port, running, write_policy
from tests.postgres_server import running_postgres

from heedful.control import run_sync
from heedful.memory.postgres.database import PostgresDatabase
from heedful.memory.postgres.store import PostgresStore
from heedful.records import DecisionFilter

TWICE = 0.1
"""Share of the feedback that is sent again after it was acknowledged."""
PATIENCE = 3.0
"""Seconds of the answer 404 after which a question is asked again: its decision died with its server."""


@dataclass
class Server:
    """A `heedful serve` process that can be killed and started again on the same port."""

    words: Sequence[str]
    folder: Path
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        command = [sys.executable, "-m", "heedful", "serve", *self.words, "--port", str(self.port), "--quiet"]
        environment = {**os.environ, "HEEDFUL_HOME": str(self.folder)}
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment)

    def end(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()


@dataclass(frozen=True)
class Reply:
    """A reply of a server; status 0: none."""

    status: int
    body: Any
    headers: Mapping[str, str]


@dataclass
class Load:
    """The client: what it asks, and what was acknowledged."""

    servers: Sequence[Server]
    rng: random.Random
    acknowledged: dict[int, str] = field(default_factory=dict)
    """The decision of each question whose feedback was acknowledged."""
    repeated: int = 0
    """Feedback that was sent again and was known."""
    failures: int = 0
    """Requests that no server answered."""

    async def ask(self, session: aiohttp.ClientSession, number: int) -> None:
        """Ask a question until feedback on its answer is acknowledged."""
        message = {"role": "user", "content": f"A riddle: when does desk {number} open?"}
        while True:
            asked = await self._post(session, "chat/completions", {"model": "m", "messages": [message]})
            decision = asked.headers.get("x-heedful-decision", "")
            if asked.status == 200 and await self._grade(session, number, decision):
                return
            await asyncio.sleep(0.02)

    async def _grade(self, session: aiohttp.ClientSession, number: int, decision: str) -> bool:
        """Give feedback until it is acknowledged; False if no server knows the decision any more.

        A reply that does not arrive says nothing: the feedback may be stored, so the decision stays the same.
        """
        given = {"decision": decision, "prefer": preference(number)}
        deadline = time.monotonic() + PATIENCE
        while (reply := await self._post(session, "feedback", given)).status != 200:
            if reply.status != 404:
                deadline = time.monotonic() + PATIENCE
            elif time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.02)
        self.acknowledged[number] = decision
        if self.rng.random() < TWICE:
            again = await self._post(session, "feedback", given)
            self.repeated += again.status == 200 and again.body["new"] is False
        return True

    async def _post(self, session: aiohttp.ClientSession, path: str, body: Any) -> Reply:
        """The reply of one of the servers."""
        server = self.rng.choice(self.servers)
        try:
            async with session.post(f"http://127.0.0.1:{server.port}/v1/{path}", json=body) as reply:
                self.failures += reply.status != 200
                return Reply(reply.status, await reply.json(), reply.headers)
        except (aiohttp.ClientError, TimeoutError):
            self.failures += 1
            return Reply(0, None, {})


def preference(number: int) -> str:
    return ("memory", "first", "tie")[number % 3]


async def ask_all(load: Load, requests: int, kills: int, at_once: int) -> None:
    """Ask everything; a server is killed and started again at regular places."""
    numbers = iter(range(requests))
    places = [requests * (place + 1) // (kills + 1) for place in range(kills)]

    async def client(session: aiohttp.ClientSession) -> None:
        for number in numbers:
            await load.ask(session, number)
            while places and len(load.acknowledged) >= places[0]:
                places.pop(0)
                victim = load.servers[0]
                await asyncio.to_thread(victim.end, signal.SIGKILL)
                victim.start()

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
        await asyncio.gather(*(client(session) for _ in range(at_once)))


@contextmanager
def servers(store: str, upstream: str, folder: Path, count: int) -> Iterator[list[Server]]:
    """Servers that accept requests, until the end of the block."""
    words = ("--policy", str(folder / "b.policy"), "--upstream", upstream, "--store", store)
    started = [Server(words, folder) for _ in range(count)]
    for server in started:
        server.start()
    try:
        asyncio.run(_ready(started))
        yield started
    finally:
        for server in started:
            server.end(signal.SIGTERM)


async def _ready(started: Sequence[Server]) -> None:
    deadline = time.monotonic() + 120
    async with aiohttp.ClientSession() as session:
        for server in started:
            while time.monotonic() < deadline:
                with suppress(aiohttp.ClientError):
                    async with session.get(f"http://127.0.0.1:{server.port}/readyz") as reply:
                        if reply.status == 200:
                            break
                await asyncio.sleep(0.1)


def evidence(store: PostgresStore) -> Counter[tuple[object, ...]]:
    return Counter((e.entry, e.version, e.task, e.utility) for e in run_sync(store.evidence("b")))


def compared(url: str, reference: str, load: Load) -> dict[str, int]:
    """What is in the store, against what was acknowledged and against the single server."""
    with closing(PostgresDatabase(url)) as one, closing(PostgresDatabase(reference)) as other:
        store = PostgresStore(one)
        decisions = run_sync(store.journal.select(DecisionFilter()))
        given = run_sync(store.feedback.of(decisions))
        counted = Counter(seen.decision for seen in run_sync(store.evidence("b")))
        recalls = max(counted.values(), default=0)  # entries that each prompt had
        known, single = evidence(store), evidence(PostgresStore(other))
    recorded = {decision.id for decision in decisions}
    expected = {id: preference(number) for number, id in load.acknowledged.items()}
    return {
        "acknowledged": len(load.acknowledged),
        "decisions": len(recorded),
        "decisions_lost": sum(id not in recorded for id in expected),
        "feedback_lost": sum(
            value not in {feedback.value for feedback in given.get(id, ())} for id, value in expected.items()
        ),
        "feedback_twice": sum(len(feedback) > 1 for feedback in given.values()),
        "evidence": sum(known.values()),
        "evidence_twice": sum(count != recalls for count in counted.values()),
        "evidence_differences": sum((known - single).values()) + sum((single - known).values()),
    }


def measure(requests: int, kills: int, at_once: int, seed: int) -> dict[str, float]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "upstream.py").write_text(UPSTREAM)
        write_policy(folder / "b.policy")
        postgres = stack.enter_context(running_postgres(durable=True))
        port = free_port()
        stack.enter_context(running([sys.executable, str(folder / "upstream.py"), str(port)], port))
        upstream = f"http://127.0.0.1:{port}/v1"
        loads, urls, seconds = [], [], []
        for count, killed in ((2, kills), (1, 0)):
            urls.append(postgres.new_database())
            with servers(urls[-1], upstream, folder, count) as started:
                load, begin = Load(started, random.Random(seed)), time.perf_counter()
                asyncio.run(ask_all(load, requests, killed, at_once))
                seconds.append(time.perf_counter() - begin)
            loads.append(load)
        figures = compared(urls[0], urls[1], loads[0])
    return {
        "requests": requests,
        "kills": kills,
        **figures,
        "known_feedback": loads[0].repeated,
        "failed_requests": loads[0].failures,
        "seconds": round(seconds[0], 1),
        "single_seconds": round(seconds[1], 1),
    }


FAULTS = ("decisions_lost", "feedback_lost", "feedback_twice", "evidence_twice", "evidence_differences")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    figures = measure(given.requests, given.kills, given.at_once, given.seed)
    if given.json:
        print(json.dumps(figures, indent=2))
    else:
        for name, figure in figures.items():
            print(f"{name:22}{figure:>10}")
    if any(figures[name] for name in FAULTS):
        raise SystemExit("something was lost or counted twice")


if __name__ == "__main__":
    main()
