"""How recording gets faster with workers, and what a worker costs per pass.

    python benchmarks/workers.py [--json] [--passes 200] [--delay 0.05] [--ray ray://HOST:10001]

Scripted endpoints on loopback answer after a fixed delay, one request at a time each. `speedup` compares
1, 2 and 4 of them in one run; the goal is 3.6 for 4. `overhead_ms` is the time per pass that a fleet of one
worker without a delay takes beyond the same recording without a fleet: for an endpoint, for a process, and
with `--ray` for an actor (`ray://local` starts a cluster on this machine). The goal is 5.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from heedful.benchmarks import BENCHMARKS
from heedful.models.chat import ChatModel
from heedful.models.fleet import Fleet, Worker, slots_of
from heedful.models.process import ProcessModel
from heedful.models.ray_actor import RayModel, connect
from heedful.models.scripted import ScriptedModel
from heedful.ports import Model
from heedful.protocol.ledger import Ledger
from heedful.protocol.record import Recorder, Recording
from heedful.protocol.same_model import SameModel
from heedful.sources import RetrySource
from heedful.types import Item

WORKERS = (1, 2, 4)
REPLY = {
    "choices": [
        {
            "message": {"role": "assistant", "content": "7"},
            "logprobs": {"content": [{"token": "7", "logprob": -0.1, "top_logprobs": []}]},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 9, "completion_tokens": 1},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    passes: int
    seconds: float

    @property
    def seconds_per_pass(self) -> float:
        return self.seconds / self.passes


@asynccontextmanager
async def endpoint(delay: float) -> AsyncIterator[str]:
    """The URL of an endpoint that answers after a delay."""

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(delay)
        return web.json_response(REPLY)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


def fleet_of(*models: Model) -> Fleet:
    workers = [Worker(name=str(at), model=model, capacity=1) for at, model in enumerate(models)]
    return Fleet(workers=workers, identity=models[0].traits, check=SameModel())


async def recorded(model: Model, passes: int) -> Speed:
    """A recording of this many passes after a warm-up of four."""
    await _record(model, 4)
    start = time.perf_counter()
    await _record(model, passes)
    return Speed(passes=passes, seconds=time.perf_counter() - start)


async def _record(model: Model, passes: int) -> None:
    items = [Item(id=str(at), question=f"What is {at} + 7?", answer="7") for at in range(passes)]
    sources = {0: {"none": RetrySource()}}
    recording = Recording(side="fit", items=items, sources=sources, benchmark=BENCHMARKS["svamp"])
    with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger.jsonl") as ledger:
        await Recorder(recording, model, ledger, lambda _: None).run(slots_of(model, 1))


async def throughput(workers: int, passes: int, delay: float) -> Speed:
    async with AsyncExitStack() as stack:
        urls = [await stack.enter_async_context(endpoint(delay)) for _ in range(workers)]
        models = [ChatModel(base_url=url, concurrency=1, retries=0) for url in urls]
        return await recorded(fleet_of(*models), passes)


def scripted() -> ScriptedModel:
    return ScriptedModel(script=lambda prompt: "7")


async def overheads(passes: int, ray: str | None) -> dict[str, float]:
    """Milliseconds per pass beyond the same recording without a fleet."""
    async with endpoint(0.0) as url:
        model = ChatModel(base_url=url, concurrency=1, retries=0)
        alone, fleet = await recorded(model, passes), await recorded(fleet_of(model), passes)
    process = ProcessModel(scripted, scripted().traits)
    here, there = await recorded(scripted(), passes), await recorded(fleet_of(process), passes)
    await process.aclose()
    found = {
        "endpoint": 1000 * (fleet.seconds_per_pass - alone.seconds_per_pass),
        "process": 1000 * (there.seconds_per_pass - here.seconds_per_pass),
    }
    if ray is not None:
        connect(ray)
        actor = RayModel(scripted, scripted().traits, capacity=1, cpus=0.0)
        far = await recorded(fleet_of(actor), passes)
        await actor.aclose()
        found["ray"] = 1000 * (far.seconds_per_pass - here.seconds_per_pass)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passes", type=int, default=200)
    parser.add_argument("--delay", type=float, default=0.05, help="seconds per reply")
    parser.add_argument("--ray", help="address of a Ray cluster")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    speeds = {n: asyncio.run(throughput(n, options.passes, options.delay)) for n in WORKERS}
    found = {
        "passes_per_minute": {str(n): 60 / speed.seconds_per_pass for n, speed in speeds.items()},
        "speedup": {str(n): speeds[1].seconds / speed.seconds for n, speed in speeds.items()},
        "overhead_ms": asyncio.run(overheads(options.passes, options.ray)),
    }
    if options.json:
        print(json.dumps({"passes": options.passes, "delay": options.delay, **found}, indent=1))
        return
    for name, values in found.items():
        print(f"{name:18}", "  ".join(f"{key}: {value:.2f}" for key, value in values.items()))


if __name__ == "__main__":
    main()
