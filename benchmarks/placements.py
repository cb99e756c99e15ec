"""Where memory stands in the prompt: the demo's questions with memory always in the prompt, by placement.

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

    return await asyncio.read_study_data(*(answer(task) for task in tasks))


async def measured(model: EmbeddedModel) -> dict[str, object]:
    with TemporaryDirectory() as folder:
        write_study(Path(folder) / "demo")
        setup = prepare(Path(folder) / "demo" / "study.toml", None)
    items = [*setup.splits.fit, *setup.splits.test]
    tasks = [setup.benchmark.task(item) for item in items]
    memory = setup.sources("test", 0)[SOURCE]

    def graded(told: list[Outcome]) -> list[bool]:
        return [setup.benchmark.grade(o.answer, item) for o, item in zip(told, items, strict=True)]

    plain = await answers(Controller(model=model, policy=arms.never()), tasks)
    before = graded(plain)
    rows: dict[str, object] = {"none": row(before, before, plain)}
    for placement in get_args(Placement):
        placed = {SOURCE: replace(memory, placement=placement)}
        told = await answers(Controller(model=model, policy=arms.always(SOURCE), sources=placed), tasks)
        rows[placement] = row(before, graded(told), told)
    return {"model": model.traits.name, "n": len(items), "placements": rows}


def row(before: list[bool], after: list[bool], told: list[Outcome]) -> dict[str, float]:
    low, high = wilson(sum(after), len(after))
    usages = [outcome.decode.usage for outcome in told]
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
    found = asyncio.run(measured(EmbeddedModel(weights=chosen.weights)))
    if chosen.json:
        print(json.dumps(found, indent=2))
        return
    print(f"{found['model']}, {found['n']} questions")
    for placement, figures in found["placements"].items():
        share = f"{figures['right']:>3} right [{figures['low']:.0%}, {figures['high']:.0%}]"
        counts = f"{figures['helps']:>3} helps {figures['hurts']:>3} hurts"
        tokens = f"{figures['prompt_tokens']:>4.0f} prompt tokens, {figures['cached_tokens']:.0f} cached"
        print(f"{placement:<7} {share} {counts} {tokens}")


if __name__ == "__main__":
    main()
