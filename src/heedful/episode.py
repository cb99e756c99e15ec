"""The control loop over the steps of an agent."""

from dataclasses import dataclass, field

from heedful.control import Controller
from heedful.stages.budget import after_step
from heedful.types import BudgetUse, Message, Outcome, Task


@dataclass(slots=True, kw_only=True)
class Episode:
    """The control loop for an agent: its steps share one budget, and past steps form the conversation."""

    controller: Controller
    spent: BudgetUse = field(default_factory=BudgetUse)
    earlier: tuple[Message, ...] = ()
    """Past observations and actions."""

    async def step(self, task: Task) -> Outcome:
        """Choose the next action; the task's question is the current observation."""
        task = task.after(self.earlier)
        outcome = await self.controller.answer(task, spent=self.spent)
        bought = sum(candidate.attempt.calls > 0 for candidate in outcome.candidates)
        self.spent = after_step(self.spent, bought)
        calls = outcome.decode.tool_calls
        reply = outcome.decode.text if calls else outcome.answer
        observation = (Message(role="user", content=task.question),) if task.question else ()
        action = Message(role="assistant", content=reply, tool_calls=calls)
        self.earlier = (*task.earlier, *observation, action)
        return outcome
