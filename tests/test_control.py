"""The control loop, arm by arm."""

import asyncio
from typing import Any

import pytest

from heedful import (
    Controller,
    Episode,
    MemorySource,
    PolicyError,
    RetrySource,
    ScriptedModel,
    Task,
    UsageError,
    arms,
    new_entry,
)
from heedful.models.scripted import Reply
from heedful.ports import Source
from heedful.sources import ReflectSource, VerifySource
from heedful.stages.sampling import sample_prompt
from heedful.types import Budget, Policy, Prompt, Traits
from tests.making import FixedBank

RULE = new_entry("It is blue.", kind="rule", id="blue")
EXEMPLAR = new_entry("What was it?", kind="exemplar", response="It was green.", id="green")


def says(
    plain: tuple[str, float],
    rule: tuple[str, float] = ("blue", -0.1),
    exemplar: tuple[str, float] = ("green", -0.05),
) -> ScriptedModel:
    """A model that answers by what stands in the prompt."""

    def reply(prompt: Prompt) -> Reply:
        text = " ".join(message.content for message in prompt.messages)
        return exemplar if "It was green." in text else rule if "It is blue." in text else plain

    return ScriptedModel(script=reply)


def controller(policy: Policy, model: ScriptedModel, **settings: Any) -> Controller:
    sources: dict[str, Source] = {
        "rule": MemorySource(bank=FixedBank([RULE])),
        "exemplar": MemorySource(bank=FixedBank([EXEMPLAR])),
        "hot": RetrySource(temperature=1.0, seed=7),
    }
    return Controller(model=model, policy=policy, sources=sources, **settings)


TASK = Task(question="What is it?")
UNSURE, SURE = ("red", -0.9), ("red", -0.01)


def test_never_keeps_the_first_answer_at_one_call() -> None:
    outcome = controller(arms.never(), says(UNSURE)).answer_sync(TASK)
    assert (outcome.answer, outcome.calls, outcome.route.choice, outcome.verdict) == ("red", 1, "keep", None)


def test_a_sure_model_is_not_given_memory() -> None:
    model = says(SURE)
    outcome = controller(arms.choose("rule", -0.5, 0.0), model).answer_sync(TASK)
    assert (outcome.answer, outcome.route.reason, len(model.prompts)) == ("red", "sure", 1)


def test_confidence_equal_to_the_threshold_is_sure() -> None:
    outcome = controller(arms.choose("rule", -0.9, 0.0), says(UNSURE)).answer_sync(TASK)
    assert outcome.route.choice == "keep"


def test_an_unsure_model_takes_the_surer_second_answer() -> None:
    outcome = controller(arms.choose("rule", -0.5, 0.2), says(UNSURE)).answer_sync(TASK)
    assert (outcome.answer, outcome.verdict.choice, outcome.calls) == ("blue", "accept", 2)
    assert outcome.candidates[0].attempt.recalls[0].entry == RULE


def test_a_second_answer_below_the_margin_is_rolled_back() -> None:
    outcome = controller(arms.choose("rule", -0.5, 0.2), says(UNSURE, rule=("blue", -0.8))).answer_sync(TASK)
    assert (outcome.answer, outcome.verdict.choice, outcome.verdict.reason) == ("red", "rollback", "margin")


def test_a_gate_takes_what_is_routed_however_sure() -> None:
    outcome = controller(arms.gate("rule", -0.5), says(UNSURE, rule=("blue", -5.0))).answer_sync(TASK)
    assert (outcome.answer, outcome.verdict.reason) == ("blue", "gate")


def test_always_is_one_call_with_memory_in_the_prompt() -> None:
    model = says(SURE)
    outcome = controller(arms.always("rule"), model).answer_sync(TASK)
    assert (outcome.answer, outcome.calls, outcome.baseline.source) == ("blue", 1, "rule")
    assert "It is blue." in model.prompts[0].messages[-1].content


def test_retry_asks_the_same_prompt_again() -> None:
    model = says(UNSURE)
    outcome = controller(arms.retry(-0.5), model).answer_sync(TASK)
    assert outcome.calls == 2
    assert model.prompts[0] == model.prompts[1]


def test_a_retry_source_can_have_a_temperature() -> None:
    model = says(UNSURE)
    controller(arms.gate("hot", -0.5), model).answer_sync(TASK)
    assert model.prompts[1] == sample_prompt(model.prompts[0], 1.0, 7)


@pytest.mark.parametrize(("order", "wins"), [(("rule", "exemplar"), "blue"), (("exemplar", "rule"), "green")])
def test_a_cascade_stops_at_the_first_accepted_source(order: tuple[str, str], wins: str) -> None:
    margins = {"rule": 0.1, "exemplar": 0.1}
    outcome = controller(arms.cascade(order, -0.5, margins), says(UNSURE)).answer_sync(TASK)
    assert (outcome.answer, outcome.calls) == (wins, 2)


def test_a_cascade_goes_on_after_a_rollback() -> None:
    policy = arms.cascade(("rule", "exemplar"), -0.5, {"rule": 0.1, "exemplar": 0.1})
    outcome = controller(policy, says(UNSURE, rule=("blue", -2.0))).answer_sync(TASK)
    assert (outcome.answer, outcome.calls) == ("green", 3)


AGREE = arms.agree(("rule", "exemplar"), -0.5)


def test_agree_takes_what_two_sources_say_alike_against_the_first_pass() -> None:
    outcome = controller(AGREE, says(UNSURE, rule=("green", -2.0))).answer_sync(TASK)
    assert (outcome.answer, outcome.calls, outcome.chosen) == ("green", 3, 0)


def test_agree_keeps_the_first_answer_when_the_sources_differ() -> None:
    outcome = controller(AGREE, says(UNSURE)).answer_sync(TASK)
    assert (outcome.answer, outcome.calls, outcome.verdict.reason) == ("red", 3, "no agreement")


def test_agree_asks_no_further_when_the_first_source_repeats_the_first_pass() -> None:
    outcome = controller(AGREE, says(UNSURE, rule=("red", -0.1))).answer_sync(TASK)
    assert (outcome.answer, outcome.calls) == ("red", 2)


def test_dual_takes_the_surest_accepted_source() -> None:
    policy = arms.dual(("rule", "exemplar"), -0.5, {"rule": 0.1, "exemplar": 0.1})
    outcome = controller(policy, says(UNSURE)).answer_sync(TASK)
    assert (outcome.answer, outcome.calls, outcome.chosen) == ("green", 3, 1)


def test_fixed_budget_consults_at_every_step_until_the_budget_is_spent() -> None:
    episode = Episode(controller=controller(arms.fixed_budget("rule", passes=2), says(SURE)))
    answers = [asyncio.run(episode.step(TASK)).answer for _ in range(3)]
    assert answers == ["blue", "blue", "red"]


def test_a_budget_limits_the_sources_of_one_task() -> None:
    policy = Policy(threshold=-0.5, sources=("rule", "exemplar"), combine="dual", budget=Budget(passes=1))
    assert controller(policy, says(UNSURE)).answer_sync(TASK).calls == 2


def test_memory_first_consults_the_memory_free_pass_when_unsure() -> None:
    policy = Policy(first="rule", threshold=-0.05, sources=("none",), margins={"none": 0.0})
    outcome = controller(policy, says(SURE)).answer_sync(TASK)
    assert (outcome.baseline.decode.answer, outcome.answer) == ("blue", "red")


def test_nothing_recalled_is_a_rollback_without_a_call() -> None:
    empty = Controller(
        model=says(UNSURE),
        policy=arms.gate("none-found", -0.5),
        sources={"none-found": MemorySource(bank=FixedBank([]))},
    )
    outcome = empty.answer_sync(TASK)
    assert (outcome.answer, outcome.calls, outcome.verdict.reason) == ("red", 1, "nothing recalled")


def test_a_signal_with_its_own_questions_counts_their_calls() -> None:
    outcome = controller(arms.choose("rule", 0.5, 0.0, signal="agreement"), says(UNSURE)).answer_sync(TASK)
    assert (outcome.confidence, outcome.calls, outcome.route.choice) == (1.0, 4, "keep")
    always = controller(arms.choose("rule", 2.0, 0.0, signal="agreement"), says(UNSURE)).answer_sync(TASK)
    assert (always.calls, always.answer) == (8, "blue")


def test_a_gate_does_not_pay_for_a_confidence_it_does_not_look_at() -> None:
    outcome = controller(arms.gate("rule", 2.0, signal="agreement"), says(UNSURE)).answer_sync(TASK)
    assert (outcome.calls, outcome.candidates[0].confidence) == (5, None)


@pytest.mark.parametrize(
    ("policy", "says_what"),
    [
        (arms.gate("rules", 0.0), "source 'rules'"),
        (arms.choose("rule", 0.0, 0.0, signal="luck"), "signal 'luck'"),
        (Policy(guards=("polite",)), "guard 'polite'"),
        (Policy(sources=("rule",), threshold=0.0, margins={}), "margins"),
    ],
)
def test_a_policy_that_cannot_be_carried_out_is_refused(policy: Policy, says_what: str) -> None:
    with pytest.raises(PolicyError, match=says_what):
        controller(policy, says(UNSURE))


@pytest.mark.parametrize("policy", [Policy(first="rule", sources=("critic",)), Policy(first="critic")])
@pytest.mark.parametrize("critic", [ReflectSource(), VerifySource()])
def test_a_critic_of_the_memory_free_answer_needs_one(
    policy: Policy, critic: ReflectSource | VerifySource
) -> None:
    sources = {"rule": RetrySource(), "critic": critic}
    with pytest.raises(PolicyError, match="'critic' needs a memory-free first pass"):
        Controller(model=says(UNSURE), policy=policy, sources=sources)
    Controller(model=says(UNSURE), policy=Policy(sources=("critic",)), sources=sources)


def test_a_signal_that_the_model_cannot_give_is_refused_with_what_to_do() -> None:
    silent = ScriptedModel(script={}, traits=Traits(name="silent", logprobs=False, fingerprint="x"))
    with pytest.raises(
        PolicyError, match=r"needs logprobs, which silent does not return; choose agreement, ptrue or stated"
    ):
        controller(arms.choose("rule", 0.0, 0.0), silent)
    narrow = ScriptedModel(script={}, traits=Traits(name="narrow", top_logprobs=1, fingerprint="x"))
    with pytest.raises(PolicyError, match="top_logprobs"):
        controller(arms.choose("rule", 0.0, 0.0, signal="margin"), narrow)


def test_a_model_without_logprobs_can_still_be_asked_by_agreement() -> None:
    model = says(UNSURE)
    model.traits = Traits(name="silent", logprobs=False, fingerprint="x")
    outcome = controller(arms.choose("rule", 2.0, 0.0, signal="agreement"), model).answer_sync(TASK)
    assert (outcome.answer, outcome.verdict.choice) == ("blue", "accept")


def test_an_episode_waits_out_its_cooldown() -> None:
    policy = Policy(threshold=float("inf"), sources=("rule",), guards=(), budget=Budget(cooldown=2))
    episode = Episode(controller=controller(policy, says(SURE)))
    reasons = [asyncio.run(episode.step(TASK)).route.reason for _ in range(5)]
    assert reasons == ["always", "cooldown", "cooldown", "always", "cooldown"]


def test_an_episode_refuses_an_action_it_already_took_here() -> None:
    policy = Policy(threshold=float("inf"), sources=("rule",), guards=("progress",))
    episode = Episode(controller=controller(policy, says(SURE)))
    first, second = [asyncio.run(episode.step(TASK)) for _ in range(2)]
    assert (first.answer, second.answer) == ("blue", "red")
    assert second.verdict.reason == "progress:repeated"


def test_the_outcome_tells_settings_enough_to_rebuild_the_second_pass() -> None:
    outcome = controller(arms.choose("rule", -0.5, 0.2), says(UNSURE)).answer_sync(TASK)
    assert outcome.sources["rule"]["placement"] == "auto"
    assert outcome.sources["rule"]["bank"] == "fixed"


def test_a_pattern_that_is_no_regular_expression_is_refused_before_the_model_is_asked() -> None:
    model = says(UNSURE)
    with pytest.raises(UsageError, match="not a regular expression"):
        controller(arms.never(), model).answer_sync(Task(question="?", answer_pattern="("))
    assert model.prompts == []


@pytest.mark.parametrize("question", ["", "  ", None, 7])
def test_a_task_that_asks_nothing_is_refused_before_any_call(question: Any) -> None:
    model = says(("grey", -0.1))
    with pytest.raises(UsageError, match=r"neither a question|set it to text"):
        Controller(model=model, policy=arms.never()).answer_sync(Task(question=question))
    assert model.prompts == []
