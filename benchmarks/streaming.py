"""First-token and total latency of streams, with an upstream whose answers take a fixed time.

usage: python benchmarks/streaming.py [--json] [--requests N]

Each pass takes 400 ms at the upstream; streamed, its ten chunks come every 40 ms. Compares the upstream
itself, a policy that never consults (relayed), a shadow whose policy would consult, and `hold` and
`speculate` with answers that are kept and answers that are replaced.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path

from proxy import free_port, running, write_policy

UPSTREAM = """
import asyncio, json, sys

TEXT, PASS_SECONDS = ["The", " desk", " opens", " at", " 7", " am", " every", " single", " day", "."], 0.4

def completion(logprob):
    tokens = [{"token": t, "logprob": logprob, "top_logprobs": []} for t in TEXT]
    message = {"role": "assistant", "content": "".join(TEXT)}
    choice = {"index": 0, "message": message, "logprobs": {"content": tokens}, "finish_reason": "stop"}
    return json.dumps({"id": "c", "object": "chat.completion", "choices": [choice], "usage": {}}).encode()

def event(delta, logprob, finish=None):
    tokens = [{"token": delta["content"], "logprob": logprob, "top_logprobs": []}] if delta else []
    choice = {"index": 0, "delta": delta, "logprobs": {"content": tokens}, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "c", "choices": [choice]}).encode() + b"\\n\\n"

async def answer(reader, writer):
    head = await reader.readuntil(b"\\r\\n\\r\\n")
    lines = head.lower().split(b"\\r\\n")
    length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length"))
    body = await reader.readexactly(length)
    logprob = -2.0 if b"riddle" in body and b"Notes" not in body else -0.01
    if json.loads(body).get("stream"):
        kind = b"Content-Type: text/event-stream\\r\\nConnection: close"
        writer.write(b"HTTP/1.1 200 OK\\r\\n" + kind + b"\\r\\n\\r\\n")
        for piece in TEXT:
            await asyncio.sleep(PASS_SECONDS / len(TEXT))
            writer.write(event({"content": piece}, logprob))
        writer.write(event({}, logprob, "stop") + b"data: [DONE]\\n\\n")
    else:
        await asyncio.sleep(PASS_SECONDS)
        reply = completion(logprob)
        head = f"HTTP/1.1 200 OK\\r\\nContent-Length: {len(reply)}\\r\\nConnection: close\\r\\n\\r\\n"
        writer.write(head.encode() + reply)
    await writer.drain()
    writer.close()

async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()

asyncio.run(main())
"""
KEEP, RIDDLE = "When does desk 7 open?", "A riddle: when does desk 7 open?"


def stream(port: int, question: str) -> tuple[float, float]:
    """Seconds until the first text, and until the end."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": question}]}
    start, first = time.perf_counter(), 0.0
    connection.request("POST", "/v1/chat/completions", json.dumps(body))
    for line in connection.getresponse():
        if not first and b'"content"' in line:
            first = time.perf_counter() - start
    connection.close()
    return first, time.perf_counter() - start


@contextmanager
def started() -> Iterator[dict[str, tuple[int, str]]]:
    """Each case with the port and the question that it is asked."""
    from heedful import arms
    from heedful.protocol.bundle import read_bundle, write_bundle

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "upstream.py").write_text(UPSTREAM)
        write_policy(folder / "gate.policy")
        never = replace(read_bundle(folder / "gate.policy"), policy=arms.never())
        write_bundle(folder / "never.policy", never)
        upstream = free_port()
        stack.enter_context(running([sys.executable, str(folder / "upstream.py"), str(upstream)], upstream))

        def served(policy: str, streaming: str, *more: str) -> int:
            port, home = free_port(), folder / f"{policy}-{streaming}{''.join(more)}"
            words = ["--policy", str(folder / policy), "--upstream", f"http://127.0.0.1:{upstream}/v1"]
            options = [*words, "--streaming", streaming, "--port", str(port), *more]
            command = [sys.executable, "-m", "heedful", "serve", *options]
            stack.enter_context(running(command, port, HEEDFUL_HOME=str(home)))
            return port

        hold, speculate = served("gate.policy", "hold"), served("gate.policy", "speculate")
        yield {
            "direct": (upstream, KEEP),
            "relayed": (served("never.policy", "hold"), KEEP),
            "shadow": (served("gate.policy", "hold", "--shadow"), RIDDLE),
            "hold_kept": (hold, KEEP),
            "hold_replaced": (hold, RIDDLE),
            "speculate_kept": (speculate, KEEP),
            "speculate_replaced": (speculate, RIDDLE),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--requests", type=int, default=15)
    chosen = parser.parse_args()
    figures = {}
    with started() as cases:
        for name, (port, question) in cases.items():
            stream(port, question)
            times = [stream(port, question) for _ in range(chosen.requests)]
            first, total = (statistics.median(column) * 1000 for column in zip(*times, strict=True))
            figures[name] = {"first_ms": round(first), "total_ms": round(total)}
    if chosen.json:
        print(json.dumps(figures, indent=2))
        return
    for name, figure in figures.items():
        print(f"{name:20} first text {figure['first_ms']:5} ms   total {figure['total_ms']:5} ms")


if __name__ == "__main__":
    main()
