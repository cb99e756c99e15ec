"""The compute-matched control: the same prompt again, without memory."""

from dataclasses import dataclass, replace
from typing import ClassVar

from heedful.ports import Model
from heedful.stages.answer import read_answer
from heedful.stages.compose import first_prompt
from heedful.types import Attempt, Plan, Spec, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySource:
    """Asks again; at temperature 0 a deterministic model intentionally gives the same answer."""

    memory_free_first: ClassVar[bool] = False
    temperature: float = 0.0
    seed: int | None = None

    @property
    def spec(self) -> Spec:
        return {"kind": "retry", "temperature": self.temperature, "seed": self.seed}

    async def prepare(self, task: Task, baseline: Attempt | None) -> Plan | None:
        prompt = first_prompt(task)
        if self.temperature or self.seed is not None:
            prompt = replace(prompt, temperature=self.temperature, seed=self.seed)
        return Plan(prompt=prompt)

    async def attempt(self, plan: Plan, task: Task, model: Model, baseline: Attempt | None) -> Attempt:
        decode = read_answer(await model.decode(plan.prompt), task)
        return Attempt(source="retry", prompt=plan.prompt, decode=decode)
