"""Two memory proxies on the demo's questions: engram-proxy, which injects what it recalls, and heedful.

usage: python benchmarks/memory_proxies.py --engram PATH --policy FILE [--json] [--questions N] [--rounds N]

PATH is the `engram` command of an environment with engram-proxy; FILE is a bundle of the demo, as
`heedful study export results/demo --to FILE` writes it. Both proxies know the demo's bank and ask the same
embedded model. An answer is helped if it is right through the proxy and wrong without it, and hurt in the
opposite case. engram-proxy runs without its embedding model, which needs Ollama: it then recalls by words.

Overhead is measured with the instant upstream of benchmarks/proxy.py and 16 connections.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from proxy import UPSTREAM, Proxy, free_port, measure, running

INSTRUCTIONS = "Answer the question in one short, complete sentence."
MAX_TOKENS = 20
OVERHEAD_REQUESTS = 600
AT_ONCE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyScore:
    """The answers of one way to ask, against those without memory."""

    n: int
    right: int
    right_interval: tuple[float, float]
    helped: int
    hurt: int
    hurt_interval: tuple[float, float]
    """Of the share of all questions."""


def ask(url: str, key: str, question: str) -> str:
    parts = urlsplit(url)
    messages = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": question}]
    body = {"model": "m", "messages": messages, "max_tokens": MAX_TOKENS, "temperature": 0}
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=300)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    connection.request("POST", f"{parts.path}/chat/completions", json.dumps(body), headers)
    reply = json.loads(connection.getresponse().read())
    connection.close()
    return str(reply["choices"][0]["message"]["content"] or "")


@contextmanager
def engram(command: str, upstream: str, folder: Path) -> Iterator[Proxy]:
    """engram-proxy with the demo's notes; `upstream` is a base URL without /v1."""
    from heedful.demo.scenario import entries

    notes, database, port = folder / "notes.md", folder / "engram.db", free_port()
    notes.write_text("".join(f"- {entry.text} {entry.response}\n" for entry in entries()))
    words = [command, "--port", str(port), "--upstream", upstream, "--db", str(database)]
    absent = "http://127.0.0.1:9"
    env = {**os.environ, "ENGRAM_SERVICES": absent}
    subprocess.run([*words, "import", str(notes)], check=True, stdout=subprocess.DEVNULL, env=env)
    with running([*words, "up"], port, ENGRAM_SERVICES=absent) as pid:
        yield Proxy(port, pid)


@contextmanager
def heedful(policy: str, upstream: str, folder: Path, key: str = "") -> Iterator[Proxy]:
    port, env = free_port(), {"HEEDFUL_HOME": str(folder), "OPENAI_API_KEY": key}
    words = ["serve", "--policy", policy, "--upstream", f"{upstream}/v1", "--port", str(port)]
    with running([sys.executable, "-m", "heedful", *words], port, 120, **env) as pid:
        yield Proxy(port, pid)


def scores(urls: dict[str, str], key: str, limit: int | None) -> dict[str, ProxyScore]:
    """Every question asked in every way, one after the other."""
    from heedful.demo.scenario import names_right, questions
    from heedful.stats.intervals import wilson
    from heedful.stats.paired import count_pairs

    asked = questions("test")[:limit]
    right = {
        name: [names_right(ask(url, key, item.question), item.answer) for item in asked]
        for name, url in urls.items()
    }
    summed = {}
    for name, grades in right.items():
        pairs = count_pairs(right["no memory"], grades)
        summed[name] = ProxyScore(
            n=len(asked),
            right=sum(grades),
            right_interval=wilson(sum(grades), len(asked)),
            helped=pairs.helps,
            hurt=pairs.hurts,
            hurt_interval=wilson(pairs.hurts, len(asked)),
        )
    return summed


def overhead(proxies: dict[str, Proxy], rounds: int) -> dict[str, dict[str, float]]:
    """The median over rounds of CPU and latency per request."""
    question = "When does the Velkirk showroom open?"
    figures = {}
    for name, proxy in proxies.items():
        runs = [measure(proxy, question, OVERHEAD_REQUESTS, AT_ONCE) for _ in range(rounds)]
        names = ("cpu_us", "p50_ms", "p99_ms")
        figures[name] = {
            field: round(statistics.median(getattr(r, field) for r in runs), 2) for field in names
        }
    return figures


def main() -> None:
    from heedful import EmbeddedModel

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engram", required=True)
    parser.add_argument("--policy", required=True)
    parser.add_argument("--questions", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        for name in ("instant", "asked"):
            (folder / name).mkdir()
        (folder / "upstream.py").write_text(UPSTREAM)
        port = free_port()
        stack.enter_context(running([sys.executable, str(folder / "upstream.py"), str(port)], port))
        instant = f"http://127.0.0.1:{port}"
        proxies = {
            "engram-proxy": stack.enter_context(engram(chosen.engram, instant, folder / "instant")),
            "heedful": stack.enter_context(heedful(chosen.policy, instant, folder / "instant")),
        }
        costs = overhead(proxies, chosen.rounds)
        model = EmbeddedModel()
        key = model.chat.key or ""
        url = model.chat.base_url.removesuffix("/v1")
        served = {
            "engram-proxy": stack.enter_context(engram(chosen.engram, url, folder / "asked")),
            "heedful": stack.enter_context(heedful(chosen.policy, url, folder / "asked", key)),
        }
        urls = {"no memory": f"{url}/v1"}
        urls |= {name: f"http://127.0.0.1:{proxy.port}/v1" for name, proxy in served.items()}
        answers = scores(urls, key, chosen.questions)
    if chosen.json:
        print(
            json.dumps({"overhead": costs, "answers": {n: asdict(s) for n, s in answers.items()}}, indent=2)
        )
        return
    for name, cost in costs.items():
        print(f"{name:13} {cost}")
    for name, score in answers.items():
        low, high = score.hurt_interval
        print(
            f"{name:13} right {score.right}/{score.n}, helped {score.helped}, hurt {score.hurt} "
            f"(95% interval {low:.0%} to {high:.0%})"
        )


if __name__ == "__main__":
    main()
