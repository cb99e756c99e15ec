"""A memory-free control: self-consistency, the most frequent answer of several samples."""

import asyncio
from dataclasses import dataclass, replace
from typing import ClassVar

from heedful.ports import Model
from heedful.stages.answer import read_answer, same_answer
from heedful.stages.compose import first_prompt
from heedful.types import Attempt, Decode, Plan, Spec, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteSource:
    """Samples the memory-free prompt; the most frequent answer wins, the earliest on a tie."""

    memory_free_first: ClassVar[bool] = False
    samples: int = 3
    temperature: float = 0.7
    seed: int = 0

    @property
    def spec(self) -> Spec:
        return {"kind": "vote", "samples": self.samples, "temperature": self.temperature, "seed": self.seed}

    async def prepare(self, task: Task, baseline: Attempt | None) -> Plan | None:
        prompt = replace(first_prompt(task), temperature=self.temperature, seed=self.seed * 1000 + 1)
        return Plan(prompt=prompt)

    async def attempt(self, plan: Plan, task: Task, model: Model, baseline: Attempt | None) -> Attempt:
        seeds = range(self.seed * 1000 + 1, self.seed * 1000 + 1 + self.samples)
        replies = await asyncio.gather(*(model.decode(replace(plan.prompt, seed=seed)) for seed in seeds))
        decodes = [read_answer(reply, task) for reply in replies]
        winner = max(decodes, key=lambda decode: (_votes(decode, decodes), -decodes.index(decode)))
        return Attempt(source="vote", prompt=plan.prompt, decode=winner)


def _votes(decode: Decode, decodes: list[Decode]) -> int:
    return sum(bool(decode.answer) and same_answer(decode.answer, other.answer) for other in decodes)
