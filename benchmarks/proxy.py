"""CPU and latency of a proxied chat request, on loopback, with an upstream that answers at once.

usage: python benchmarks/proxy.py [--json] [--requests N] [--rounds N] [--litellm-python PATH]

Compares, in one run and with the same client: no proxy; a bare Starlette + aiohttp forwarder; heedful with
an answer that is kept, and with one that consults memory (two calls); and the LiteLLM proxy, if the Python
of an environment with litellm[proxy] is given. Every arm gets the same reply from the upstream, with
log-probs. CPU is that of the proxy's own process, its ended threads and its children.
"""

import argparse
import asyncio
import json
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

CONCURRENCY = (1, 16, 128)
WARM_UP = 200
SETTLING = 1.0
"""Seconds in which a proxy finishes what it does after its answers, such as writing decisions."""
UPSTREAM = """
import asyncio, json, sys

def reply(text, logprob):
    tokens = [{"token": t, "bytes": list(t.encode()), "logprob": logprob,
               "top_logprobs": [{"token": t, "bytes": None, "logprob": logprob},
                                {"token": "~", "bytes": None, "logprob": logprob - 3}]} for t in text]
    message = {"role": "assistant", "content": "".join(text)}
    choice = {"index": 0, "message": message, "logprobs": {"content": tokens}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 20, "completion_tokens": len(text), "total_tokens": 20 + len(text)}
    body = json.dumps({"id": "c1", "object": "chat.completion", "created": 1, "model": "m",
                       "choices": [choice], "usage": usage}).encode()
    head = f"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n"
    return head.encode() + body

WORDS = ["The", " desk", " opens", " at", " 7", " am", " every", " day", "."]
SURE, UNSURE = reply(WORDS, -0.01), reply(WORDS, -2.0)

class Upstream(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.buffer = transport, b""
    def data_received(self, data):
        self.buffer += data
        while True:
            head, found, rest = self.buffer.partition(b"\\r\\n\\r\\n")
            if not found:
                return
            length = next((int(l.split(b":")[1]) for l in head.split(b"\\r\\n")
                           if l.lower().startswith(b"content-length")), 0)
            if len(rest) < length:
                return
            body, self.buffer = rest[:length], rest[length:]
            self.transport.write(UNSURE if b"riddle" in body and b"Notes" not in body else SURE)

async def main():
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", int(sys.argv[1]))
    print("ready", flush=True)
    await server.serve_forever()

asyncio.run(main())
"""
BARE = """
import sys
import aiohttp, uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

URL = sys.argv[2]
HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding", "upgrade"}
session = None

def relayed(headers):
    return {name: value for name, value in headers.items() if name.lower() not in HOP}

async def forward(request: Request) -> Response:
    global session
    if session is None:
        session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=256), auto_decompress=False)
    body = await request.body()
    async with session.post(URL + "/chat/completions", data=body, headers=relayed(request.headers)) as reply:
        return Response(await reply.read(), reply.status, headers=relayed(reply.headers))

app = Starlette(routes=[Route("/v1/chat/completions", forward, methods=["POST"])])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False)
"""
LITELLM = """
model_list:
  - model_name: m
    litellm_params: {{model: openai/m, api_base: "{url}", api_key: none}}
"""


@dataclass(frozen=True)
class Proxy:
    """A running server: where it listens, and the process whose CPU counts."""

    port: int
    pid: int
    key: str = "none"


@dataclass(frozen=True)
class Figures:
    cpu_us: float
    p50_ms: float
    p99_ms: float
    per_second: float


def free_port() -> int:
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def cpu_seconds(pid: int) -> float:
    """CPU time of a process, its ended threads, and the processes that it started."""
    used = time.clock_gettime((~pid << 3) | 2)  # the CPU clock of another process
    threads = Path(f"/proc/{pid}/task").iterdir()
    children = {int(child) for thread in threads for child in (thread / "children").read_text().split()}
    return used + sum(map(cpu_seconds, children))


@contextmanager
def running(command: Sequence[str], port: int, seconds: float = 30, **env: str) -> Iterator[int]:
    """A server process, once its port accepts connections."""
    import socket

    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **env}
    )
    try:
        deadline = time.monotonic() + seconds
        while True:
            with socket.socket() as trying:
                if trying.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{' '.join(command[:4])} … did not start")
            time.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def write_policy(file: Path) -> None:
    """A gate over a bank of 1,000 notes, recalled by BM25."""
    from heedful import arms, new_entry
    from heedful.protocol.bundle import Bundle, BundleModel, BundleSource, write_bundle
    from heedful.protocol.study import ModelSettings, SourceSettings
    from heedful.types import TaskTemplate

    entries = tuple(
        new_entry(f"Desk {n} opens at {n % 12} am.", kind="fact", id=f"e{n}") for n in range(1000)
    )
    source = BundleSource(settings=SourceSettings(bank="b", recall="bm25"), entries=entries, digest="")
    bundle = Bundle(
        study="bench",
        lock="",
        locked_at="",
        policy=arms.gate("b", threshold=-0.5),
        task=TaskTemplate(),
        model=BundleModel(settings=ModelSettings(), name="m", fingerprint=""),
        sources={"b": source},
    )
    write_bundle(file, bundle)


async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> float:
    start = time.perf_counter()
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    assert b" 200 " in lines[0], head
    if b"transfer-encoding: chunked" in lines:
        while (size := int(await reader.readline(), 16)) >= 0:
            await reader.readexactly(size + 2)
            if size == 0:
                break
    else:
        length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length"))
        await reader.readexactly(length)
    return time.perf_counter() - start


async def load(proxy: Proxy, question: str, requests: int, at_once: int) -> list[float]:
    """Latencies of many requests over kept-alive connections."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": question}]}).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {proxy.key}\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()

    async def client(share: int) -> list[float]:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        try:
            return [await one(reader, writer, head + body) for _ in range(share)]
        finally:
            writer.close()

    shares = [requests // at_once] * at_once
    return [seconds for times in await asyncio.gather(*map(client, shares)) for seconds in times]


def measure(proxy: Proxy, question: str, requests: int, at_once: int, warm_up: int = WARM_UP) -> Figures:
    asyncio.run(load(proxy, question, max(warm_up, at_once), at_once))
    time.sleep(SETTLING)
    cpu, start = cpu_seconds(proxy.pid), time.perf_counter()
    times = sorted(asyncio.run(load(proxy, question, requests, at_once)))
    wall = time.perf_counter() - start
    time.sleep(SETTLING)
    used = cpu_seconds(proxy.pid) - cpu
    p99 = times[int(len(times) * 0.99)]
    return Figures(used / len(times) * 1e6, statistics.median(times) * 1e3, p99 * 1e3, len(times) / wall)


@contextmanager
def started(litellm: str | None) -> Iterator[dict[str, tuple[Proxy, str]]]:
    """Every proxy with the question that it is asked."""
    keep, riddle = "When does desk 7 open?", "A riddle: when does desk 7 open?"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "upstream.py").write_text(UPSTREAM)
        (folder / "bare.py").write_text(BARE)
        write_policy(folder / "b.policy")

        def start(port: int, *command: str, seconds: float = 30, **env: str) -> Proxy:
            return Proxy(port, stack.enter_context(running(command, port, seconds, **env)))

        port = free_port()
        direct = start(port, sys.executable, str(folder / "upstream.py"), str(port))
        url = f"http://127.0.0.1:{port}/v1"
        port = free_port()
        bare = start(port, sys.executable, str(folder / "bare.py"), str(port), url)
        port = free_port()
        words = ("--policy", str(folder / "b.policy"), "--upstream", url, "--port", str(port))
        served = start(port, sys.executable, "-m", "heedful", "serve", *words, HEEDFUL_HOME=str(folder))
        proxies = {
            "direct": (direct, keep),
            "bare": (bare, keep),
            "heedful_kept": (served, keep),
            "heedful_routed": (served, riddle),
        }
        if litellm is not None:
            (folder / "litellm.yaml").write_text(LITELLM.format(url=url))
            port, key = free_port(), f"sk-{secrets.token_hex(16)}"
            script = "from litellm.proxy.proxy_cli import run_server; run_server()"
            options = ("--config", str(folder / "litellm.yaml"), "--port", str(port), "--host", "127.0.0.1")
            slow = start(port, litellm, "-c", script, *options, seconds=120, LITELLM_MASTER_KEY=key)
            proxies["litellm"] = (Proxy(slow.port, slow.pid, key), keep)
        yield proxies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--litellm-python", help="Python of an environment with litellm[proxy] and openai<3")
    chosen = parser.parse_args()
    with started(chosen.litellm_python) as proxies:
        runs: dict[str, dict[int, list[Figures]]] = {name: {c: [] for c in CONCURRENCY} for name in proxies}
        for _ in range(chosen.rounds):
            for at_once in CONCURRENCY:
                for name, (proxy, question) in proxies.items():
                    part = 10 if name == "litellm" else 1  # it takes so much longer
                    share, warm_up = max(chosen.requests // part, at_once), WARM_UP // part
                    runs[name][at_once].append(measure(proxy, question, share, at_once, warm_up))
    figures: dict[str, object] = {name: summary(by) for name, by in runs.items()}
    kept = cpu_of(runs["heedful_kept"])
    figures["ratio_bare"] = kept / cpu_of(runs["bare"])
    figures["ratio_litellm"] = cpu_of(runs["litellm"]) / kept if "litellm" in runs else None
    if chosen.json:
        print(json.dumps(figures, indent=2))
        return
    for name, figure in figures.items():
        print(f"{name:15}", figure)


def cpu_of(by: dict[int, list[Figures]]) -> float:
    """The median over all rounds and concurrencies above 1, where clocks of 10 ms matter least."""
    figures = [figure for at_once, runs in by.items() if at_once > 1 for figure in runs]
    return float(statistics.median(figure.cpu_us for figure in figures))


def summary(by: dict[int, list[Figures]]) -> dict[str, object]:
    def middle(name: str, at_once: int) -> float:
        return round(statistics.median(getattr(figure, name) for figure in by[at_once]), 3)

    names = ("cpu_us", "p50_ms", "p99_ms", "per_second")
    return {
        "cpu_us": round(cpu_of(by), 1),
        "p50_ms": middle("p50_ms", 1),
        "p99_ms": middle("p99_ms", 1),
        "by_concurrency": {str(c): {name: middle(name, c) for name in names} for c in by},
    }


if __name__ == "__main__":
    main()
