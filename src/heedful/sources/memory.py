"""A bank and a placement: recall, compose, decode."""

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.ports import Bank, Model
from heedful.stages.answer import read_answer
from heedful.stages.compose import HEADING, compose
from heedful.types import Attempt, Placement, Recall, Spec, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySource:
    """Decodes with the entries that a bank recalls for the question."""

    bank: Bank
    placement: Placement = "auto"
    limit: int = 3
    heading: str = HEADING

    @property
    def spec(self) -> Spec:
        return {
            "kind": "memory",
            **self.bank.spec,
            "placement": self.placement,
            "limit": self.limit,
            "heading": self.heading,
        }

    async def attempt(self, task: Task, model: Model, baseline: Attempt | None) -> Attempt | None:
        recalls = await self.bank.recall(task.question, limit=self.limit)
        return await self.attempt_with(recalls, task, model) if recalls else None

    async def attempt_with(self, recalls: Sequence[Recall], task: Task, model: Model) -> Attempt:
        """Decode with these recalls, whatever the bank would find now."""
        prompt = compose(task, [recall.entry for recall in recalls], self.placement, self.heading)
        decode = read_answer(await model.decode(prompt), task)
        return Attempt(source=self.bank.name, prompt=prompt, decode=decode, recalls=tuple(recalls))
