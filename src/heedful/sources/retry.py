"""The compute-matched control: the same prompt again, without memory."""

from dataclasses import dataclass
from typing import ClassVar

from heedful.ports import Model
from heedful.stages.answer import read_answer
from heedful.stages.compose import first_prompt
from heedful.stages.sampling import PER_PROMPT, sample_prompt
from heedful.types import Attempt, Plan, Spec, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySource:
    """Asks again; at temperature 0 a deterministic model intentionally gives the same answer."""

    memory_free_first: ClassVar[bool] = False
    temperature: float = 0.0
    seed: int = 0
    """With a temperature: tells several samples of the same prompt apart."""

    @property
    def spec(self) -> Spec:
        settings: Spec = {"kind": "retry", "temperature": self.temperature}
        if not self.temperature:
            return {**settings, "seed": None}
        return {**settings, "seed": self.seed, "seeds": PER_PROMPT}

    async def prepare(self, task: Task, baseline: Attempt | None) -> Plan | None:
        prompt = first_prompt(task)
        if self.temperature:
            prompt = sample_prompt(prompt, self.temperature, self.seed)
        return Plan(prompt=prompt)

    async def attempt(self, plan: Plan, task: Task, model: Model, baseline: Attempt | None) -> Attempt:
        decode = read_answer(await model.decode(plan.prompt), task)
        return Attempt(source="retry", prompt=plan.prompt, decode=decode)
