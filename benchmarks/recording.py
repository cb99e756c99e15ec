"""How fast a recording is: tokens a second with and without log-probs, and the share of the engine's speed.

    python benchmarks/recording.py [--json] [--weights qwen2.5-coder-1.5b] [--questions 24] [--slots 1 2 4]

Everything is measured in one run on the same prompts. `engine` calls the engine in this process, without
HTTP, client or ledger; `recording` is the recorder of a study with log-probs; `plain` is the same without
them. Set GOMP_SPINCOUNT or OMP_WAIT_POLICY in the environment to compare how threads wait.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heedful.benchmarks import BENCHMARKS
from heedful.models.embedded import EmbeddedModel
from heedful.ports import Benchmark, Model
from heedful.protocol.ledger import Ledger
from heedful.protocol.record import Recorder, Recording
from heedful.sources import RetrySource
from heedful.stages.compose import first_prompt
from heedful.types import Item

THINGS = ("apples", "books", "coins", "stamps", "shells", "cards", "pens", "cups")


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Tokens and passes over the seconds they took."""

    passes: int
    tokens: int
    seconds: float

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds


def items(number: int) -> list[Item]:
    """Word problems of about the published length, all different."""
    return [
        Item(
            id=str(at),
            question=(
                f"Jack has {at + 13} {THINGS[at % 8]} and finds {3 * at + 4} more on Monday. On Tuesday he "
                f"gives {at + 2} of them to his sister. How many {THINGS[at % 8]} does Jack have now?"
            ),
            answer=str(3 * at + 15),
        )
        for at in range(number)
    ]


def engine_speed(model: EmbeddedModel, benchmark: Benchmark, asked: Sequence[Item]) -> Speed:
    """The engine alone: the same requests through its own function."""
    server, chat = model._running
    requests = [chat._request(first_prompt(benchmark.task(item))) for item in asked]

    def call(request: dict[str, Any]) -> int:
        return int(server.handle_chat_completions(request)["usage"]["completion_tokens"])

    start = time.perf_counter()
    with ThreadPoolExecutor(model.slots) as pool:
        tokens = sum(pool.map(call, requests))
    return Speed(passes=len(asked), tokens=tokens, seconds=time.perf_counter() - start)


async def recording_speed(model: Model, slots: int, benchmark: Benchmark, asked: Sequence[Item]) -> Speed:
    """A study's recorder, with its ledger on disk."""
    recording = Recording(side="fit", items=asked, sources={0: {"none": RetrySource()}}, benchmark=benchmark)
    with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger.jsonl") as ledger:
        start = time.perf_counter()
        await Recorder(recording, model, ledger, lambda _: None).run(slots)
        seconds = time.perf_counter() - start
        tokens = sum(row.record.usage.completion_tokens for row in ledger.passes.values())
    return Speed(passes=len(asked), tokens=tokens, seconds=seconds)


def measured(weights: str, slots: int, questions: int, *, repeatable: bool) -> dict[str, float]:
    benchmark = BENCHMARKS["svamp"]
    model = EmbeddedModel(weights=weights, slots=slots, repeatable=repeatable)
    plain = replace(model.chat, logprobs=False)
    warm, asked = items(questions + slots)[questions:], items(questions)
    asyncio.run(recording_speed(model, slots, benchmark, warm))
    engine = engine_speed(model, benchmark, asked)
    recorded = asyncio.run(recording_speed(model, slots, benchmark, asked))
    without = asyncio.run(recording_speed(plain, slots, benchmark, asked))
    return {
        "tokens_per_second": recorded.tokens_per_second,
        "tokens_per_second_without_logprobs": without.tokens_per_second,
        "ratio": recorded.tokens_per_second / without.tokens_per_second,
        "engine_tokens_per_second": engine.tokens_per_second,
        "share_of_engine": recorded.tokens_per_second / engine.tokens_per_second,
        "passes_per_minute": 60 * recorded.passes / recorded.seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", default="smollm2-135m")
    parser.add_argument("--questions", type=int, default=24)
    parser.add_argument("--slots", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--repeatable", action="store_true", help="also measure the repeatable setting")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {
        str(slots): measured(options.weights, slots, options.questions, repeatable=False)
        for slots in options.slots
    }
    if options.repeatable:
        found["repeatable"] = measured(options.weights, 1, options.questions, repeatable=True)
    if options.json:
        print(json.dumps({"weights": options.weights, "slots": found}, indent=1))
        return
    for name, speed in found.items():
        print(f"slots {name}")
        for key, value in speed.items():
            print(f"  {key:36} {value:8.2f}")


if __name__ == "__main__":
    main()
