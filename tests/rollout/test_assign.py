"""Rollouts: who gets the policy's answer, and what a decision records about it."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from heedful import (
    Controller,
    MemorySource,
    ModelError,
    PolicyError,
    ScriptedModel,
    SqliteStore,
    arms,
    new_entry,
)
from heedful.decisions import decision_fields, decision_of, read_decision
from heedful.feedback import answer_feedback, evidence_of, grade_feedback
from heedful.memory.journal import SqliteJournal
from heedful.rollout.assign import Rollout
from heedful.trials import coin_decided
from heedful.types import Message, Outcome, Prompt, Task
from tests.making import FixedBank

SHADOW = Rollout(mode="shadow")


def of_user(name: str) -> Task:
    return Task(question="What is it?", scope={"user": name})


def answer(task: Task = of_user("ana"), **settings: Any) -> Outcome:
    """A model that says red without memory and blue with it, and a policy that accepts memory."""

    def reply(prompt: Prompt) -> tuple[str, float]:
        return ("blue", -0.1) if "It is blue." in prompt.messages[-1].content else ("red", -0.9)

    source = MemorySource(bank=FixedBank([new_entry("It is blue.", kind="rule")]))
    controller = Controller(
        model=ScriptedModel(script=reply), policy=arms.gate("m", threshold=0.0), sources={"m": source}
    )
    return replace(controller, **settings).answer_sync(task)


def test_a_shadow_serves_the_first_answer_and_records_what_the_policy_accepts() -> None:
    outcome = answer(rollout=SHADOW)
    assert (outcome.answer, outcome.chosen, outcome.calls) == ("red", None, 2)
    assert outcome.assignment is not None
    assert (outcome.assignment.mode, outcome.assignment.arm) == ("shadow", "first")
    assert outcome.assignment.accepted == 0
    assert outcome.candidates[0].verdict.choice == "accept"
    assert (outcome.verdict.choice, outcome.verdict.reason) == ("rollback", "shadow")
    assert answer().answer == "blue", "without a rollout the policy decides"


def test_a_known_answer_in_a_shadow_is_paired_evidence() -> None:
    decision = decision_of(answer(rollout=SHADOW), at=1.0)
    feedback = answer_feedback(decision, "blue", "text", lambda one, other: one == other)
    assert [e.utility for e in evidence_of(decision, [feedback])["fixed"]] == [1.0]


@pytest.mark.parametrize(("share", "said", "calls"), [(1.0, "blue", 2), (0.0, "red", 1)])
def test_a_canary_serves_its_share_and_makes_no_second_pass_for_the_others(
    share: float, said: str, calls: int
) -> None:
    outcome = answer(rollout=Rollout(mode="canary", share=share))
    assert (outcome.answer, outcome.calls) == (said, calls)
    assert outcome.route.reason == ("unsure" if share else "control group")


def test_a_coin_is_drawn_in_the_canary_only(store: SqliteStore) -> None:
    journal = SqliteJournal(store.database)
    held_out: dict[str, Any] = {"journal": journal, "explore": 1.0, "chance": lambda: 0.7}
    inside = answer(rollout=Rollout(mode="canary", share=1.0), **held_out)
    assert (inside.answer, inside.verdict.reason) == ("red", "held out")
    assert inside.assignment.accepted == inside.trial.accepted == 0
    for rollout in (SHADOW, Rollout(mode="canary", share=0.0)):
        assert answer(rollout=rollout, **held_out).trial is None
    assert asyncio.run(journal.announced()) == 1


def test_about_the_share_of_the_users_is_drawn_and_a_larger_share_keeps_them() -> None:
    tasks = [of_user(f"user {n}") for n in range(2000)]

    def drawn(share: float, salt: str = "heedful") -> set[str]:
        rollout = Rollout(mode="canary", share=share, salt=salt)
        return {task.scope["user"] for task in tasks if rollout.assign(task).arm == "policy"}

    assert 0.17 < len(drawn(0.2)) / 2000 < 0.23
    assert drawn(0.2) < drawn(0.5)
    assert drawn(1.0) == {task.scope["user"] for task in tasks}
    both = drawn(0.5) & drawn(0.5, salt="another")
    assert 0.2 < len(both) / 2000 < 0.3, "another salt draws independently"


def test_a_user_or_a_conversation_has_one_arm_for_all_its_turns() -> None:
    rollout = Rollout(mode="canary", share=0.5)
    first = Task(question="Hello, who are you?")
    turns = (Message(role="user", content=first.question), Message(role="assistant", content="A desk."))
    later = Task(question="Where are you?", earlier=turns)
    assert rollout.assign(first) == rollout.assign(later)
    assert rollout.assign(replace(first, scope={"user": "ana"})).key == rollout.assign(of_user("ana")).key
    assert rollout.assign(of_user("bo")).key != rollout.assign(of_user("ana")).key
    assert "zoe" not in str(rollout.assign(of_user("zoe")))


def test_a_decision_keeps_its_assignment_and_one_without_it_is_still_read() -> None:
    decision = decision_of(answer(rollout=SHADOW), at=1.0)
    fields = decision_fields(decision)
    assert read_decision(fields) == decision
    del fields["assignment"]
    assert read_decision(fields) == replace(decision, assignment=None)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"mode": "dark"}, "choose shadow or canary"),
        ({"mode": "canary", "share": 1.5}, "from 0 to 1"),
        ({"mode": "shadow", "share": 0.5}, "a shadow serves nobody"),
        ({"mode": "canary", "salt": ""}, "needs 1 to 64 bytes"),
    ],
)
def test_an_impossible_rollout_is_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        Rollout(**settings)


MEMORY_FIRST = replace(arms.never(), first="m")


def test_the_shadow_of_a_policy_that_uses_memory_first_serves_a_pass_without_memory() -> None:
    outcome = answer(rollout=SHADOW, policy=MEMORY_FIRST)
    assert (outcome.baseline.decode.answer, outcome.answer, outcome.calls) == ("blue", "red", 2)
    assert (outcome.verdict.reason, outcome.assignment.accepted) == ("shadow", None)
    assert outcome.candidates[outcome.chosen or 0].attempt.source == "none"
    decision = decision_of(outcome, at=1.0)
    feedback = answer_feedback(decision, "blue", "text", lambda one, other: one == other)
    assert [e.utility for e in evidence_of(decision, [feedback])["fixed"]] == [1.0]


def test_the_control_group_of_such_a_policy_makes_one_call_without_memory() -> None:
    outcome = answer(rollout=Rollout(mode="canary", share=0.0), policy=MEMORY_FIRST)
    assert (outcome.answer, outcome.calls, outcome.baseline.source) == ("red", 1, "none")
    assert answer(rollout=Rollout(mode="canary", share=1.0), policy=MEMORY_FIRST).answer == "blue"


def test_a_failure_of_the_memory_pass_does_not_cost_the_shadows_answer() -> None:
    def failing(prompt: Prompt) -> tuple[str, float] | Exception:
        calls.append(prompt)
        return ("red", -0.9) if len(calls) == 1 else ModelError("down")

    calls: list[Prompt] = []
    outcome = answer(rollout=SHADOW, policy=MEMORY_FIRST, model=ScriptedModel(script=failing))
    assert (outcome.answer, outcome.chosen) == ("red", None)
    assert {fault.stage for fault in outcome.faults} == {"source:m", "control"}


@pytest.mark.parametrize(("coin", "said"), [(0.4, "blue"), (0.6, "red")])
def test_a_trial_of_such_a_policy_compares_its_answer_with_a_pass_without_memory(
    coin: float, said: str, store: SqliteStore
) -> None:
    settings = {"journal": SqliteJournal(store.database), "explore": 1.0, "chance": lambda: coin}
    outcome = answer(policy=MEMORY_FIRST, **settings)  # type: ignore[arg-type]
    assert (outcome.answer, outcome.calls, outcome.faults) == (said, 2, ())
    decision = decision_of(outcome, at=1.0)
    assert coin_decided(decision)
    for right in (True, False):
        [evidence] = evidence_of(decision, [grade_feedback(decision, right)])["fixed"]
        assert evidence.utility == (1.0 if right == (said == "blue") else -1.0)


@pytest.mark.parametrize("coin", [0.4, 0.6])
def test_a_trial_without_its_control_is_no_trial_on_either_side_of_the_coin(
    coin: float, store: SqliteStore
) -> None:
    def failing(prompt: Prompt) -> tuple[str, float] | Exception:
        return ("blue", -0.1) if "It is blue." in prompt.messages[-1].content else ModelError("down")

    journal = SqliteJournal(store.database)
    outcome = answer(
        policy=MEMORY_FIRST,
        journal=journal,
        explore=1.0,
        chance=lambda: coin,
        model=ScriptedModel(script=failing),
    )
    assert (outcome.answer, outcome.trial) == ("blue", None)
