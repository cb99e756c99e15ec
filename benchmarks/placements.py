"""Accuracy by placement: the demo's questions with memory in every prompt.

usage: python benchmarks/placements.py [--json] [--weights smollm2-135m]
"""

import argparse
import asyncio
import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

from heedful import Controller, EmbeddedModel, arms
from heedful.demo.scenario import SOURCE, write_study
from heedful.models import weights
from heedful.models.catalogue import CATALOGUE
from heedful.protocol.setup import prepare
from heedful.stats.intervals import wilson
from heedful.types import Outcome, Placement, Task

AT_ONCE = 4


async def answers(controller: Controller, tasks: list[Task]) -> list[Outcome]:
    slots = asyncio.Semaphore(AT_ONCE)

    async def answer(task: Task) -> Outcome:
        async with slots:
            return await controller.answer(task)

    return await asyncio.gather(*(answer(task) for task in tasks))


async def measure(model: EmbeddedModel) -> dict[str, object]:
    with TemporaryDirectory() as folder:
        write_study(Path(folder) / "demo")
        setup = prepare(Path(folder) / "demo" / "study.toml", None)
    items = [*setup.splits.fit, *setup.splits.test]
    tasks = [setup.benchmark.task(item) for item in items]
    memory = setup.sources("test", 0)[SOURCE]

    def grades(outcomes: list[Outcome]) -> list[bool]:
        return [setup.benchmark.grade(o.answer, item) for o, item in zip(outcomes, items, strict=True)]

    plain = await answers(Controller(model=model, policy=arms.never()), tasks)
    before = grades(plain)
    rows: dict[str, object] = {"none": row(before, before, plain)}
    for placement in get_args(Placement):
        placed = {SOURCE: replace(memory, placement=placement)}
        outcomes = await answers(Controller(model=model, policy=arms.always(SOURCE), sources=placed), tasks)
        rows[placement] = row(before, grades(outcomes), outcomes)
    return {"model": model.traits.name, "n": len(items), "placements": rows}


def row(before: list[bool], after: list[bool], outcomes: list[Outcome]) -> dict[str, float]:
    low, high = wilson(sum(after), len(after))
    usages = [outcome.decode.usage for outcome in outcomes]
    return {
        "right": sum(after),
        "low": low,
        "high": high,
        "helps": sum(b and not a for a, b in zip(before, after, strict=True)),
        "hurts": sum(a and not b for a, b in zip(before, after, strict=True)),
        "prompt_tokens": sum(usage.prompt_tokens for usage in usages) / len(usages),
        "cached_tokens": sum(usage.cached_tokens for usage in usages) / len(usages),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--weights", default="smollm2-135m")
    chosen = parser.parse_args()
    for name in (chosen.weights, "all-minilm-l6-v2"):
        if name in CATALOGUE:
            weights.pull(name)
    figures = asyncio.run(measure(EmbeddedModel(weights=chosen.weights)))
    if chosen.json:
        print(json.dumps(figures, indent=2))
        return
    print(f"{figures['model']}, {figures['n']} questions")
    for placement, counts in figures["placements"].items():
        share = f"{counts['right']:>3} right [{counts['low']:.0%}, {counts['high']:.0%}]"
        changes = f"{counts['helps']:>3} helps {counts['hurts']:>3} hurts"
        tokens = f"{counts['prompt_tokens']:>4.0f} prompt tokens, {counts['cached_tokens']:.0f} cached"
        print(f"{placement:<7} {share} {changes} {tokens}")


if __name__ == "__main__":
    main()
