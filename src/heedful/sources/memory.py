"""A pass with memory: recall, compose, decode."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, get_args

import msgspec

from heedful.errors import UsageError
from heedful.limits import refuse_choice, refuse_count, refuse_text
from heedful.ports import Bank, Model
from heedful.stages.answer import read_answer
from heedful.stages.compose import HEADING, compose
from heedful.types import Attempt, Audience, Placement, Plan, Recall, Spec, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySource:
    """Decodes a prompt with the entries that a bank recalls for the question."""

    memory_free_first: ClassVar[bool] = False
    bank: Bank
    placement: Placement = "auto"
    limit: int = 3
    heading: str = HEADING

    def __post_init__(self) -> None:
        if not callable(getattr(self.bank, "recall", None)):
            raise UsageError(f"MemorySource(bank) is {self.bank!r}; give a bank, such as MemoryBank")
        refuse_choice("MemorySource(placement)", self.placement, get_args(Placement))
        refuse_count("MemorySource(limit)", self.limit, least=1)
        refuse_text("MemorySource(heading)", self.heading)

    @property
    def spec(self) -> Spec:
        return {
            "kind": "memory",
            **self.bank.spec,
            "placement": self.placement,
            "limit": self.limit,
            "heading": self.heading,
        }

    async def prepare(self, task: Task, baseline: Attempt | None) -> Plan | None:
        audience = Audience(scope=task.scope, at=time.time() if task.at is None else task.at)
        recalled = await self.bank.recall(task.search_text, limit=self.limit, audience=audience)
        # a bank of another package may know no scopes, and a leak cannot be taken back
        recalls = [recall for recall in recalled if audience.sees(recall.entry)]
        return self.plan(recalls, task) if recalls else None

    def plan(self, recalls: Sequence[Recall], task: Task) -> Plan:
        """The pass with these recalls, regardless of what the bank would recall now."""
        prompt = compose(task, [recall.entry for recall in recalls], self.placement, self.heading)
        return Plan(prompt=prompt, recalls=tuple(recalls))

    async def attempt(self, plan: Plan, task: Task, model: Model, baseline: Attempt | None) -> Attempt:
        decode = read_answer(await model.decode(plan.prompt), task)
        return Attempt(source=self.bank.name, prompt=plan.prompt, decode=decode, recalls=plan.recalls)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """The recorded settings of a memory source, enough to rebuild its prompts."""

    bank: str
    placement: Placement
    heading: str


def memory_settings(spec: Spec) -> MemorySettings | None:
    """The settings of a recorded memory source; None for a source without memory."""
    return msgspec.convert(dict(spec), MemorySettings) if spec.get("kind") == "memory" else None
