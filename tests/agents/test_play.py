"""Episodes: what is executed, how they end, and what bad weather does to them."""

import threading
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful import arms
from heedful.agents.actions import match_action
from heedful.agents.agent_arms import MEMORY, fixed_arms, shadow_policy, threshold_policy
from heedful.agents.example import solved_example
from heedful.agents.play import Arm, Player, StepView
from heedful.agents.step_task import ActingSettings
from heedful.agents.world_worker import WorldWorker
from heedful.control import run_sync
from heedful.errors import ModelError, RequestError
from heedful.memory.entries import new_entry
from heedful.models.scripted import Reply
from heedful.types import Budget, Policy, Prompt
from tests.agents.making import BLUE_HINT, HEADING, UNSURE, played
from tests.agents.toy_world import ACTIONS, BoxWorld, scripted, walker


def test_memory_is_consulted_at_the_unsure_step_only_and_turns_it() -> None:
    record = played(UNSURE, seed=1)
    assert [step.action for step in record.steps] == ["go east", "go east", "open blue box"]
    assert [step.route.reason for step in record.steps] == ["sure", "sure", "unsure"]
    last = record.steps[-1]
    assert (last.first_action, last.second_action, last.chosen) == ("open red box", "open blue box", 0)
    assert [recall.entry for recall in last.candidates[0].record.recalls] == [BLUE_HINT.id]
    assert (record.end, record.score, record.success, record.calls) == ("done", 1.0, True, 4)
    assert (record.routed, record.accepted, record.invalid) == (1, 1, 0)


def test_without_memory_the_first_action_is_executed() -> None:
    record = played(arms.never(), seed=1)
    assert (record.end, record.score, record.routed) == ("done", 0.0, 0)
    assert record.steps[-1].action == "open red box"


def test_the_same_goal_seed_and_policy_give_the_same_trace_twice() -> None:
    assert played(UNSURE, seed=4) == played(UNSURE, seed=4)


def test_the_shadow_policy_consults_everywhere_and_changes_nothing() -> None:
    shadow, alone = played(shadow_policy()), played(arms.never())
    assert [step.action for step in shadow.steps] == [step.action for step in alone.steps]
    assert shadow.routed == len(shadow.steps)
    assert shadow.steps[-1].second_action == "open blue box"
    assert shadow.accepted == 0


def test_budget_and_cooldown_limit_the_consultations_of_an_episode() -> None:
    said = iter(range(100))
    shy: Any = lambda prompt: (f"go {next(said)}", -0.9)  # noqa: E731
    settings = ActingSettings(steps=7)
    two = played(threshold_policy(-0.5, 5.0, Budget(passes=2)), model=scripted(shy), settings=settings)
    assert [step.routed for step in two.steps] == [True, True, False, False, False, False, False]
    slow = threshold_policy(-0.5, 5.0, Budget(passes=9, cooldown=2))
    spaced = played(slow, model=scripted(shy), settings=settings)
    assert [step.routed for step in spaced.steps] == [True, False, False, True, False, False, True]


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("fly away", "valid:not-allowed"),
        ("open blue box", "contract:room"),
        ("go west", "progress:no-effect"),
    ],
)
def test_a_second_action_that_a_guard_refuses_is_rolled_back(told: str, reason: str) -> None:
    def unsure(prompt: Prompt) -> Reply:
        said = told if HEADING in prompt.messages[-1].content else "go west"
        return (said, -0.1 if said == told and told != "go west" else -0.9)

    policy = replace(UNSURE, margins={MEMORY: -1.0})
    record = played(policy, model=scripted(unsure), settings=ActingSettings(steps=2))
    assert {step.action for step in record.steps} == {"go west"}
    assert record.steps[-1].verdict is not None
    assert record.steps[-1].verdict.reason == reason


replies = st.sampled_from([*ACTIONS, "Action: Go East", "fly", "", "open blue box and run", "search[x]"])
policies = st.sampled_from(
    [
        UNSURE,
        shadow_policy(),
        *fixed_arms(Budget(passes=3), -0.3).values(),
        threshold_policy(0.0, -2.0, Budget()),
    ]
)


@settings(max_examples=60)
@given(
    first=st.lists(replies, min_size=1, max_size=8),
    second=st.lists(st.tuples(replies, st.floats(-2, 0)), min_size=1, max_size=8),
    hint=st.text(min_size=1, max_size=60).filter(str.strip),
    policy=policies,
    seed=st.integers(0, 5),
)
def test_whatever_memory_says_an_executed_action_is_the_first_pass_or_an_accepted_valid_one(
    first: list[str], second: list[tuple[str, float]], hint: str, policy: Policy, seed: int
) -> None:
    asked = [0, 0]

    def answer(prompt: Prompt) -> Reply:
        noted = HEADING in prompt.messages[-1].content
        asked[noted] += 1
        return second[asked[1] % len(second)] if noted else (first[asked[0] % len(first)], -0.7)

    seen: list[StepView] = []
    entry = new_entry(hint, kind="hint")
    played(policy, seed=seed, model=scripted(answer), entries=[entry], watch=seen.append)
    assert seen
    for view in seen:
        step, valid = view.record, view.observation.actions
        if step.chosen is None:
            assert step.action == step.first_action
        else:
            assert step.candidates[step.chosen].verdict.choice == "accept"
            assert step.action in valid
            assert step.action == match_action(step.candidates[step.chosen].record.answer, valid)


def test_a_world_that_raises_is_started_again_once_and_then_ends_the_episode() -> None:
    worlds: list[BoxWorld] = []

    def make() -> BoxWorld:
        worlds.append(BoxWorld(fails_at=1 if not worlds else None))
        return worlds[-1]

    assert played(make=make).end == "done"
    assert [world.closed for world in worlds] == [1, 0]
    record = played(make=lambda: BoxWorld(fails_at=1))
    assert (record.end, record.failed, len(record.steps)) == ("environment", True, 1)
    assert "RuntimeError: the world fell apart" in record.error


def test_a_world_that_hangs_is_ended_and_the_episode_says_so() -> None:
    hanging = [threading.Event(), threading.Event()]
    waiting = list(hanging)
    record = played(make=lambda: BoxWorld(hangs=waiting.pop()), patience=0.05)
    assert record.end == "environment"
    assert "did not answer step('go east') within 0.05 s" in record.error
    assert all(event.is_set() for event in hanging)


def test_twenty_steps_of_nonsense_end_the_episode() -> None:
    said = iter(range(1000))
    babble: Any = lambda prompt: (f"hmm {next(said)}", -3.0)  # noqa: E731
    record = played(model=scripted(babble), settings=ActingSettings(steps=50))
    assert (record.end, record.invalid, len(record.steps)) == ("nonsense", 20, 20)


def test_a_loop_without_progress_ends_the_episode() -> None:
    stubborn: Any = lambda prompt: ("go west", -0.01)  # noqa: E731
    record = played(model=scripted(stubborn), settings=ActingSettings(steps=50))
    assert (record.end, len(record.steps)) == ("loop", 5)


def test_the_step_limit_ends_the_episode() -> None:
    record = played(settings=ActingSettings(steps=2))
    assert (record.end, len(record.steps)) == ("steps", 2)


def test_a_prompt_that_is_too_long_is_shortened_once() -> None:
    def narrow(prompt: Prompt) -> Reply:
        return RequestError("too long") if len(prompt.messages) > 4 else walker(prompt)

    assert played(seed=2, model=scripted(narrow)).end == "done"
    tiny: Any = lambda prompt: RequestError("too long")  # noqa: E731
    record = played(model=scripted(tiny))
    assert (record.end, record.error, record.steps) == ("context", "too long", ())


def test_a_model_that_fails_ends_the_episode_and_one_that_fails_with_memory_does_not() -> None:
    down: Any = lambda prompt: ModelError("down")  # noqa: E731
    record = played(model=scripted(down))
    assert (record.end, record.error) == ("model", "down")

    def forgetful(prompt: Prompt) -> Reply:
        return ModelError("no notes") if HEADING in prompt.messages[-1].content else walker(prompt)

    record = played(model=scripted(forgetful))
    assert (record.end, record.steps[-1].action) == ("done", "open red box")
    assert "no notes" in record.steps[-1].faults[0].error


def test_a_script_is_executed_before_the_first_decode() -> None:
    model = scripted()
    record = played(arms.never(), seed=2, model=model, script=("go east", "go east", "go east"))
    assert [step.action for step in record.steps] == ["open red box"]
    assert record.script == ("go east", "go east", "go east")
    assert (record.score, len(model.prompts)) == (1.0, 1)


def test_past_observations_are_cut_and_the_current_one_is_whole() -> None:
    model = scripted()
    played(arms.never(), seed=2, model=model, settings=ActingSettings(steps=12, past_length=10))
    question = model.prompts[-1].messages[-1].content
    assert question.count(" -> You are i…") == 2
    assert "Situation: You are in room 3.\n" in question


def test_a_prompt_repeats_the_one_before_it_up_to_the_last_action() -> None:
    model = scripted()
    played(arms.never(), seed=2, model=model)
    for before, after in zip(model.prompts, model.prompts[1:], strict=False):
        assert after.messages[:-1] == before.messages[:-1]
        done = before.messages[-1].content.partition("\n\nSituation:")[0].removesuffix("nothing")
        assert after.messages[-1].content.startswith(done)


def test_every_prompt_begins_with_the_example() -> None:
    example = solved_example(BoxWorld(), ActingSettings())
    assert [turn.role for turn in example[:2]] == ["user", "assistant"]
    assert [turn.content for turn in example[1::2]] == ["go east", "go east", "go east", "open blue box"]
    model = scripted()
    player = Player(model=model, settings=ActingSettings(steps=12), example=example)
    run_sync(player.play(WorldWorker(BoxWorld, 30.0), "test", 2, Arm(name="arm", policy=arms.never())))
    assert model.prompts
    assert all(prompt.messages[1 : 1 + len(example)] == example for prompt in model.prompts)
