"""The effect in a randomised trial: unbiased, with an interval that covers the truth."""

import asyncio
import random
from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest

from heedful import Controller, MemorySource, ScriptedModel, arms, new_entry
from heedful.feedback import evidence_of, grade_feedback
from heedful.records import CandidateRecord, Decision, Feedback, PassRecord, RecallRef
from heedful.testing import DECISION
from heedful.trials import TrialEffect, coin_decided, final_grade, trial_effect
from heedful.types import Prompt, Task, Trial, Verdict
from tests.making import FixedBank

MEMORY = PassRecord(
    source="memory",
    prompt="p",
    model="m",
    status="decoded",
    text="green",
    answer="green",
    recalls=(RecallRef(entry="sky", version="v", score=1.0),),
)
SPEC = {"kind": "memory", "bank": "notes", "placement": "auto", "heading": "Notes:"}


def trial_decision(id: str, allowed: bool, answer: str = "green") -> Decision:
    accept = Verdict(choice="accept", reason="gate")
    candidate = CandidateRecord(record=replace(MEMORY, answer=answer), confidence=None, verdict=accept)
    return replace(
        DECISION,
        id=id,
        task=Task(question=id),
        sources={"memory": SPEC},
        candidates=(candidate,),
        chosen=0 if allowed else None,
        trial=Trial(share=0.05, allowed=allowed, accepted=0),
    )


def simulate(rng: random.Random, n: int) -> tuple[list[Decision], dict[str, list[Feedback]]]:
    """Answers of a trial: memory helps 20% and hurts 10% of them, and hard questions are often wrong."""
    decisions, feedback = [], {}
    for place in range(n):
        kind = rng.random()
        without, with_memory = (
            (False, True) if kind < 0.2 else (True, False) if kind < 0.3 else (kind < 0.75,) * 2
        )
        decision = trial_decision(f"d{place}", rng.random() < 0.5)
        assert decision.trial is not None
        right = with_memory if decision.trial.allowed else without
        decisions.append(decision)
        feedback[decision.id] = [grade_feedback(decision, right)]
    return decisions, feedback


def test_the_interval_covers_the_true_effect_in_95_of_100_trials() -> None:
    rng, runs, n = random.Random(5), 2000, 400
    covered, estimates = 0, []
    for _ in range(runs):
        counts = {True: [0, 0], False: [0, 0]}
        for _ in range(n):  # as `simulate` draws them, without the records
            kind, allowed = rng.random(), rng.random() < 0.5
            right = (kind < 0.2 or 0.3 <= kind < 0.75) if allowed else 0.2 <= kind < 0.75
            counts[allowed][0] += 1
            counts[allowed][1] += right
        (used, used_right), (held, held_right) = counts[True], counts[False]
        effect = TrialEffect(used=used, used_right=used_right, held_out=held, held_out_right=held_right)
        assert effect.difference is not None
        covered += effect.difference.low <= 0.1 <= effect.difference.high
        estimates.append(effect.difference.value)
    assert 0.94 <= covered / runs <= 0.96
    assert np.mean(estimates) == pytest.approx(0.1, abs=4 * np.std(estimates) / runs**0.5)


def test_the_evidence_of_a_trial_has_the_mean_of_the_paired_effect() -> None:
    rng = random.Random(3)
    utilities = []
    for _ in range(20):
        decisions, feedback = simulate(rng, 500)
        for decision in decisions:
            [seen] = evidence_of(decision, feedback[decision.id])["notes"]
            utilities.append(seen.utility)
    assert set(utilities) == {-1.0, 1.0}
    assert np.mean(utilities) == pytest.approx(0.1, abs=4 * np.std(utilities) / len(utilities) ** 0.5)


def test_the_effect_counts_graded_decisions_on_which_the_coin_decided() -> None:
    used, held = trial_decision("used", True), trial_decision("held", False)
    ungraded = trial_decision("ungraded", True)
    same = trial_decision("same", True, answer=DECISION.first.answer)
    outside = replace(used, id="outside", trial=None)
    decisions = [used, held, ungraded, same, outside]
    feedback = {d.id: [grade_feedback(d, d.id == "used")] for d in (used, held, same, outside)}
    effect = trial_effect(decisions, feedback)
    assert effect == TrialEffect(used=1, used_right=1, held_out=1, held_out_right=0)
    assert effect.difference is not None
    assert (effect.difference.value, effect.difference.n) == (1.0, 2)
    assert [coin_decided(decision) for decision in decisions] == [True, True, True, False, False]
    assert TrialEffect(used=3).difference is None


def test_a_known_answer_grades_the_final_answer_and_outweighs_a_grade() -> None:
    decision = trial_decision("d", True)
    known = Feedback(decision="d", kind="answer", value="blue", metric="text", grades=(True, False))
    assert final_grade(decision, [grade_feedback(decision, True), known]) is False
    assert final_grade(replace(decision, chosen=None), [known]) is True
    assert final_grade(decision, [grade_feedback(decision, True)]) is True
    assert final_grade(decision, []) is None


class ListJournal:
    """A journal in memory."""

    def __init__(self) -> None:
        self.coins: dict[str, Trial] = {}
        self.decisions: list[Decision] = []

    async def announce(self, decision: str, trial: Trial) -> None:
        self.coins[decision] = trial

    async def record(self, decision: Decision) -> None:
        self.decisions.append(decision)

    async def find(self, decision: str) -> Decision:
        raise NotImplementedError

    async def recent(self, limit: int) -> list[Decision]:
        raise NotImplementedError

    async def purge(self, before: float) -> int:
        raise NotImplementedError

    async def aclose(self) -> None: ...


def test_the_controller_s_own_trials_recover_the_effect_of_memory() -> None:
    """Memory mends 30% and spoils 10% of the answers; the first pass is right on 55%."""
    note = new_entry("Think again.", kind="rule")

    def reply(prompt: Prompt) -> tuple[str, float]:
        text = prompt.messages[-1].content
        draw = random.Random(text.partition("?")[0]).random()
        right = (draw < 0.3 or draw >= 0.55) if "Think" in text else draw >= 0.45
        return ("yes" if right else "no"), -0.5

    journal, rng, answers = ListJournal(), random.Random(8), 1600
    controller = Controller(
        model=ScriptedModel(script=reply),
        policy=arms.gate("memory", 0.0),
        sources={"memory": MemorySource(bank=FixedBank([note]))},
        journal=journal,
        explore=0.5,
        chance=rng.random,
    )

    async def ask_all() -> None:
        for n in range(answers):
            await controller.answer(Task(question=f"Is {n} right?"))

    asyncio.run(ask_all())
    assert len(journal.decisions) == answers
    assert len(journal.coins) == pytest.approx(answers / 2, abs=4 * (answers / 4) ** 0.5)
    trials = [decision for decision in journal.decisions if decision.trial is not None]
    assert {d.id: replace(d.trial, accepted=None) for d in trials if d.trial is not None} == journal.coins
    feedback = {d.id: [grade_feedback(d, d.answer == "yes")] for d in journal.decisions}
    effect = trial_effect(journal.decisions, feedback)
    decided = [decision for decision in trials if coin_decided(decision)]
    assert len(decided) / len(trials) == pytest.approx(0.4, abs=0.07)
    paired = fmean(
        (decision.candidates[0].record.answer == "yes") - (decision.first.answer == "yes")
        for decision in decided
    )
    assert effect.difference is not None
    assert effect.difference.value == pytest.approx(paired, abs=0.02), "as if both answers were known"
    assert effect.difference.low <= paired <= effect.difference.high
