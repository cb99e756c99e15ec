"""A memory-free control: a yes/no check decides whether a new answer replaces the first."""

from dataclasses import dataclass
from typing import ClassVar

from heedful.ports import Model
from heedful.sources.reflect import plain_first_pass
from heedful.stages.answer import read_answer
from heedful.stages.compose import first_prompt
from heedful.stages.confidence import CHECK_QUESTION
from heedful.stages.sampling import PER_PROMPT, sample_prompt
from heedful.types import Attempt, Message, Plan, Prompt, Spec, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySource:
    """Asks whether the first answer is correct, and samples a new one unless the reply is yes."""

    memory_free_first: ClassVar[bool] = True
    temperature: float = 0.7
    seed: int = 0

    @property
    def spec(self) -> Spec:
        settings: Spec = {"kind": "verify", "on": "none", "temperature": self.temperature}
        return {**settings, "seed": self.seed, "seeds": PER_PROMPT}

    async def prepare(self, task: Task, baseline: Attempt | None) -> Plan | None:
        first = plain_first_pass(baseline, "verify")
        reply = Message(role="assistant", content=first.decode.text)
        messages = (*first.prompt.messages, reply, Message(role="user", content=CHECK_QUESTION))
        return Plan(prompt=Prompt(messages=messages, max_tokens=2))

    async def attempt(self, plan: Plan, task: Task, model: Model, baseline: Attempt | None) -> Attempt:
        first = plain_first_pass(baseline, "verify")
        check = await model.decode(plan.prompt)
        if check.text.strip().casefold().startswith("yes"):
            return Attempt(source="verify", prompt=plan.prompt, decode=first.decode)
        prompt = sample_prompt(first_prompt(task), self.temperature, self.seed * 1000 + 7)
        decode = read_answer(await model.decode(prompt), task)
        return Attempt(source="verify", prompt=plan.prompt, decode=decode)
