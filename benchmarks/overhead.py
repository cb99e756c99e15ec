"""The overhead of heedful beyond model calls, with a bank of 10,000 entries.

usage: python benchmarks/overhead.py [--json] [--entries N]   (needs the weights; for one core: taskset -c 0)
"""

import argparse
import asyncio
import json
import random
import statistics
import time
from collections.abc import Callable, Sequence

from heedful import Controller, EmbeddedModel, MemoryBank, MemorySource, ScriptedModel, Task, arms, new_entry
from heedful.memory.dense import DenseIndex
from heedful.memory.embed import MiniLM
from heedful.models import weights

ROUNDS = 200
WORDS = [f"{a}{b}" for a in ("bar", "cor", "dil", "fen", "gam", "hob", "jut", "kel") for b in "aeiouylmnrst"]


def sentence(rng: random.Random, length: int) -> str:
    return " ".join(rng.choices(WORDS, k=length)).capitalize() + "."


def p50_ms(act: Callable[[], object], rounds: int = ROUNDS) -> float:
    def once() -> float:
        start = time.perf_counter()
        act()
        return time.perf_counter() - start

    once()
    return statistics.median(once() for _ in range(rounds)) * 1000


async def overhead_ms(bank: MemoryBank, questions: Sequence[str]) -> float:
    model = ScriptedModel(script=lambda prompt: ("an answer of a few words", -0.7))
    policy = arms.choose("memory", -0.5, 0.1)
    controller = Controller(model=model, policy=policy, sources={"memory": MemorySource(bank=bank)})
    await controller.answer(Task(question=questions[0]))
    outcomes = [await controller.answer(Task(question=question)) for question in questions]
    assert all(outcome.candidates for outcome in outcomes), "every question must consult memory"
    return statistics.median(outcome.overhead_seconds for outcome in outcomes) * 1000


async def model_call_ms(model: EmbeddedModel, questions: Sequence[str]) -> float:
    controller = Controller(model=model, policy=arms.never())
    tasks = [Task(question=question, max_tokens=16) for question in questions[:8]]
    outcomes = [await controller.answer(task) for task in tasks]
    return statistics.median(outcome.seconds for outcome in outcomes) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--entries", type=int, default=10_000)
    chosen = parser.parse_args()
    rng = random.Random(7)
    entries = [new_entry(sentence(rng, 12), kind="rule", id=f"e{i}") for i in range(chosen.entries)]
    questions = [sentence(rng, 10) for _ in range(ROUNDS)]
    minilm = MiniLM(weights.pull("all-minilm-l6-v2"))
    vectors = minilm.embed([entry.text for entry in entries])
    dense = DenseIndex(vectors, [entry.id for entry in entries], minilm)
    query = minilm.embed([questions[0]])[0]
    queries = iter(questions * 2)
    weights.pull("smollm2-135m")
    figures = {
        "entries": chosen.entries,
        "bm25_overhead_p50_ms": asyncio.run(overhead_ms(MemoryBank("b", entries, method="bm25"), questions)),
        "minilm_recall_p50_ms": p50_ms(lambda: dense.search(next(queries), 3)),
        "exact_search_p50_ms": p50_ms(lambda: dense.nearest(query, 3)),
        "model_call_p50_ms": asyncio.run(model_call_ms(EmbeddedModel(), questions)),
        "rounds": ROUNDS,
    }
    if chosen.json:
        print(json.dumps(figures, indent=2))
        return
    limits = {"bm25_overhead_p50_ms": 1, "minilm_recall_p50_ms": 15, "exact_search_p50_ms": 2}
    for name, value in figures.items():
        limit = f" (limit {limits[name]})" if name in limits else ""
        print(f"{name:<22} {value:.2f}{limit}")


if __name__ == "__main__":
    main()
