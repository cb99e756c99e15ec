"""Value policies live: what they ask, what they record, and what survives."""

import asyncio
from dataclasses import replace

import pytest

from heedful import Controller, MemorySource, PolicyError, ScriptedModel, Task, arms, new_entry
from heedful.decisions import decision_fields, decision_of, read_decision
from heedful.explain import explain
from heedful.models.scripted import Reply
from heedful.stages.value_features import ANSWER_FEATURES, GAIN_FEATURES
from heedful.types import Policy, Prompt, ValueTrees
from tests.making import FixedBank, stump

NOTE = new_entry("It is blue.", kind="rule", id="blue")
TASK = Task(question="What is it?")


SURE_IS_RIGHT = ValueTrees(
    answer=stump(ANSWER_FEATURES, "mean", -0.3, -1.5, 2.0), gain=stump(GAIN_FEATURES, "best", 0.5, 0.3, 0.0)
)
LIKE_THE_FIRST = replace(SURE_IS_RIGHT, answer=stump(ANSWER_FEATURES, "similar_to_first", 0.5, -1.0, 1.0))


def model(first: float) -> ScriptedModel:
    def reply(prompt: Prompt) -> Reply:
        text = " ".join(message.content for message in prompt.messages)
        return ("blue", -0.05) if "It is blue." in text else ("red", first)

    return ScriptedModel(script=reply)


def controller(policy: Policy, first: float = -0.9, **settings: object) -> Controller:
    source = MemorySource(bank=FixedBank([NOTE]))
    return Controller(model=model(first), policy=policy, sources={"note": source}, **settings)  # type: ignore[arg-type]


def test_an_unsure_answer_is_worth_a_second_pass_and_the_likelier_answer_wins() -> None:
    outcome = controller(arms.value(SURE_IS_RIGHT, ["note"])).answer_sync(TASK)
    assert (outcome.answer, outcome.calls, outcome.route.reason) == ("blue", 2, "worth it")
    assert outcome.verdict is not None
    assert (outcome.verdict.choice, outcome.verdict.reason) == ("accept", "likeliest")
    assert outcome.value is not None
    (step,) = outcome.value.steps
    assert (step.source, step.gain, step.cost, step.asked) == ("note", 0.3, 0.02, True)
    assert [answer.source for answer in outcome.value.answers] == ["none", "note"]
    assert [answer.reasons[0].feature for answer in outcome.value.answers] == ["mean", "mean"]


def test_a_sure_answer_is_not_worth_a_second_pass_and_the_record_says_by_how_much() -> None:
    outcome = controller(arms.value(SURE_IS_RIGHT, ["note"]), first=-0.01).answer_sync(TASK)
    assert (outcome.answer, outcome.calls, outcome.route.reason) == ("red", 1, "not worth it")
    assert outcome.value is not None
    assert [(step.gain, step.asked) for step in outcome.value.steps] == [(0.0, False)]


def test_the_record_of_a_decision_keeps_its_estimates_and_why_puts_them_in_words() -> None:
    outcome = controller(arms.value(SURE_IS_RIGHT, ["note"])).answer_sync(TASK)
    decision = read_decision(decision_fields(decision_of(outcome, 0.0)))
    assert decision.value == outcome.value
    lines = explain(decision, {recall: "It is blue." for one in decision.passes for recall in one.recalls})
    assert "  worth?   note: expected gain 30.0 points, cost 2.0: ask" in lines
    assert "  right?   none: 18%" in lines
    assert "           -1.50 the mean log-prob of its tokens: -0.9" in lines
    assert "4 verdict  chance 0.881 against 0.182 + margin 0.1; guards pass: accept (likeliest)" in lines
    assert "  right?   note: 88%" in lines


def test_a_policy_that_compares_meanings_needs_a_similarity() -> None:
    with pytest.raises(PolicyError, match="set similarity to"):
        controller(arms.value(LIKE_THE_FIRST, ["note"]))


def test_a_similarity_that_fails_is_missing_and_the_answer_survives() -> None:
    def broken(one: str, other: str) -> float:
        raise OSError("no weights")

    policy = arms.value(LIKE_THE_FIRST, ["note"], cost=0.0)
    outcome = asyncio.run(controller(policy, similarity=broken).answer(TASK))
    assert outcome.answer == "red"
    assert {fault.stage for fault in outcome.faults} == {"similarity"}
    alike = asyncio.run(controller(policy, similarity=lambda one, other: 0.9).answer(TASK))
    assert (alike.answer, alike.faults) == ("blue", ())
