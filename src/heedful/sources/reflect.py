"""A memory-free control: criticise the first answer, then answer again."""

from dataclasses import dataclass
from typing import ClassVar

from heedful.errors import PolicyError
from heedful.ports import Model
from heedful.stages.answer import read_answer
from heedful.types import Attempt, Message, Plan, Prompt, Spec, Task

CRITIQUE = "Check your answer step by step. Point out any mistake in one or two sentences."
AGAIN = "Now answer the question again, in the same form as before."


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectSource:
    """Makes two further calls: a critique of the memory-free answer, and a new answer that uses it."""

    memory_free_first: ClassVar[bool] = True

    @property
    def spec(self) -> Spec:
        return {"kind": "reflect", "on": "none", "again": AGAIN}

    async def prepare(self, task: Task, baseline: Attempt | None) -> Plan | None:
        first = plain_first_pass(baseline, "reflect")
        reply = Message(role="assistant", content=first.decode.text)
        messages = (*first.prompt.messages, reply, Message(role="user", content=CRITIQUE))
        return Plan(prompt=Prompt(messages=messages, max_tokens=task.max_tokens))

    async def attempt(self, plan: Plan, task: Task, model: Model, baseline: Attempt | None) -> Attempt:
        critique = await model.decode(plan.prompt)
        reply = Message(role="assistant", content=critique.text)
        messages = (*plan.prompt.messages, reply, Message(role="user", content=AGAIN))
        prompt = Prompt(messages=messages, max_tokens=task.max_tokens, schema=task.schema)
        decode = read_answer(await model.decode(prompt), task)
        return Attempt(source="reflect", prompt=plan.prompt, decode=decode)


def plain_first_pass(baseline: Attempt | None, source: str) -> Attempt:
    """The memory-free first pass that a control needs."""
    if baseline is None or baseline.source != "none":
        raise PolicyError(f"the source {source!r} needs a memory-free first pass; set first = 'none'")
    return baseline
