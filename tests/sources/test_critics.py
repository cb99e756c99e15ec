"""Reflect and verify: the controls that work on a memory-free answer."""

import asyncio

import pytest

from heedful import PolicyError, ScriptedModel, Task
from heedful.ports import Source
from heedful.sources import ReflectSource, VerifySource
from heedful.stages.compose import first_prompt
from heedful.stages.sampling import sample_prompt
from heedful.types import Attempt, Decode, Prompt

TASK = Task(question="How many?", instructions="Count.", max_tokens=40)
FIRST = Attempt(source="none", prompt=first_prompt(TASK), decode=Decode(text="Four.", answer="Four."))


def made(source: Source, model: ScriptedModel, baseline: Attempt | None = FIRST) -> Attempt:
    async def attempt() -> Attempt:
        plan = await source.prepare(TASK, baseline)
        assert plan is not None
        return await source.attempt(plan, TASK, model, baseline)

    return asyncio.run(attempt())


def test_reflect_shows_the_answer_asks_for_a_critique_and_then_for_another_answer() -> None:
    def script(prompt: Prompt) -> str:
        return "You forgot one." if len(prompt.messages) == 4 else "Five."

    model = ScriptedModel(script=script)
    assert made(ReflectSource(), model).decode.answer == "Five."
    said = [(message.role, message.content) for message in model.prompts[-1].messages]
    assert said[:3] == [("system", "Count."), ("user", "How many?"), ("assistant", "Four.")]
    assert said[4] == ("assistant", "You forgot one.")


def test_a_confirmed_answer_is_handed_back_as_it_is_after_one_call() -> None:
    model = ScriptedModel(script=lambda prompt: "Yes, it is.")
    assert made(VerifySource(), model).decode is FIRST.decode
    assert len(model.prompts) == 1


@pytest.mark.parametrize("check", ["no", "I am not sure", ""])
def test_an_answer_that_is_not_confirmed_is_replaced_by_a_sample(check: str) -> None:
    model = ScriptedModel(script=lambda prompt: check if prompt.max_tokens == 2 else "Five.")
    assert made(VerifySource(temperature=0.5, seed=3), model).decode.answer == "Five."
    assert model.prompts[1] == sample_prompt(FIRST.prompt, 0.5, 3007)


@pytest.mark.parametrize("source", [ReflectSource(), VerifySource()])
@pytest.mark.parametrize("baseline", [None, Attempt(source="rule", prompt=FIRST.prompt, decode=FIRST.decode)])
def test_without_a_memory_free_answer_there_is_nothing_to_criticise(
    source: Source, baseline: Attempt | None
) -> None:
    assert source.memory_free_first
    with pytest.raises(PolicyError, match="memory-free first pass"):
        made(source, ScriptedModel(script={}), baseline)
