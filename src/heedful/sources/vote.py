"""A memory-free control: self-consistency, the most frequent answer of several samples."""

import asyncio
from dataclasses import dataclass
from typing import ClassVar

from heedful.ports import Model
from heedful.stages.answer import read_answer, same_answer
from heedful.stages.compose import first_prompt
from heedful.stages.sampling import PER_PROMPT, sample_prompt
from heedful.types import Attempt, Decode, Plan, Prompt, Spec, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteSource:
    """Samples the memory-free prompt; the most frequent answer wins, the earliest on a tie."""

    memory_free_first: ClassVar[bool] = False
    samples: int = 3
    temperature: float = 0.7
    seed: int = 0

    @property
    def spec(self) -> Spec:
        settings: Spec = {"kind": "vote", "samples": self.samples, "temperature": self.temperature}
        return {**settings, "seed": self.seed, "seeds": PER_PROMPT}

    async def prepare(self, task: Task, baseline: Attempt | None) -> Plan | None:
        return Plan(prompt=self._sample(first_prompt(task), 0))

    async def attempt(self, plan: Plan, task: Task, model: Model, baseline: Attempt | None) -> Attempt:
        prompts = [self._sample(plan.prompt, number) for number in range(self.samples)]
        replies = await asyncio.gather(*map(model.decode, prompts))
        decodes = [read_answer(reply, task) for reply in replies]
        winner = max(decodes, key=lambda decode: (_votes(decode, decodes), -decodes.index(decode)))
        return Attempt(source="vote", prompt=plan.prompt, decode=winner)

    def _sample(self, prompt: Prompt, number: int) -> Prompt:
        return sample_prompt(prompt, self.temperature, self.seed * 1000 + 1 + number)


def _votes(decode: Decode, decodes: list[Decode]) -> int:
    return sum(bool(decode.answer) and same_answer(decode.answer, other.answer) for other in decodes)
