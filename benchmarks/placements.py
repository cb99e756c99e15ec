"""Where memory stands in the prompt: the demo's questions with memory always in the prompt, by placement.

usage: python benchmarks/placements.py [--json] [--weights smollm2-135m]
"""

import argparse
import asyncio
import json
from dataclasses import replace
from typing import get_args

from heedful import Controller, EmbeddedModel, arms
from heedful.demo.scenario import SOURCE, Question, is_right, questions, source
from heedful.models import weights
from heedful.models.catalogue import CATALOGUE
from heedful.models.recorded import RecordedModel
from heedful.stats.intervals import wilson
from heedful.types import Outcome, Placement

AT_ONCE = 4


async def answers(controller: Controller, asked: list[Question]) -> list[Outcome]:
    slots = asyncio.Semaphore(AT_ONCE)

    async def answer(question: Question) -> Outcome:
        async with slots:
            return await controller.answer(question.task)

    return await asyncio.gather(*(answer(question) for question in asked))


async def measured(model: EmbeddedModel) -> dict[str, object]:
    asked = [*questions("practice"), *questions("show")]
    recorded = RecordedModel(model)
    plain = await answers(Controller(model=recorded, policy=arms.never()), asked)
    before = [is_right(question, outcome.answer) for question, outcome in zip(asked, plain, strict=True)]
    rows: dict[str, object] = {"none": row(before, before, plain)}
    for placement in get_args(Placement):
        memory = replace(source(), placement=placement)
        controller = Controller(model=recorded, policy=arms.always(SOURCE), sources={SOURCE: memory})
        told = await answers(controller, asked)
        after = [is_right(question, outcome.answer) for question, outcome in zip(asked, told, strict=True)]
        rows[placement] = row(before, after, told)
    return {"model": model.traits.name, "n": len(asked), "placements": rows}


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
