"""A slow second pass fails open, and what does not depend on order runs at once."""

import asyncio
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from heedful import (
    Controller,
    Database,
    MemorySource,
    PolicyError,
    ScriptedModel,
    SqliteJournal,
    Task,
    arms,
    new_entry,
)
from heedful.ports import Source
from heedful.sources import VoteSource
from heedful.types import Audience, Decode, Policy, Prompt, Recall, Traits, Usage
from tests.making import FixedBank

TASK = Task(question="What is it?")


@dataclass
class Waiting:
    """A model whose replies to some prompts never come; it counts how many calls are under way."""

    stuck: str = "nothing is stuck"
    under_way: int = 0
    most: int = 0
    inner: ScriptedModel = field(
        default_factory=lambda: ScriptedModel(script=lambda prompt: (f"say {prompt.seed}", -2.0))
    )

    @property
    def traits(self) -> Traits:
        return self.inner.traits

    async def decode(self, prompt: Prompt) -> Decode:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            if any(self.stuck in message.content for message in prompt.messages):
                await asyncio.Event().wait()
            for _ in range(10):  # let the others begin
                await asyncio.sleep(0)
            return await self.inner.decode(prompt)
        finally:
            self.under_way -= 1

    async def aclose(self) -> None: ...


class StuckBank(FixedBank):
    async def recall(self, query: str, *, limit: int, audience: Audience | None = None) -> tuple[Recall, ...]:
        await asyncio.Event().wait()
        raise AssertionError("never")


def note(name: str) -> MemorySource:
    return MemorySource(bank=FixedBank([new_entry(f"note {name}", kind="fact", id=name)]))


def test_past_the_patience_the_first_answer_stands_and_the_decision_says_so(tmp_path: Path) -> None:
    journal = SqliteJournal(Database(tmp_path / "heedful.db"))
    model = Waiting(stuck="note slow")
    controller = Controller(
        model=model,
        policy=Policy(threshold=-0.5, sources=("quick", "slow"), combine="dual"),
        sources={"quick": note("quick"), "slow": note("slow")},
        journal=journal,
        patience=0.2,
    )
    outcome = controller.answer_sync(TASK)
    assert (outcome.answer, outcome.chosen) == ("say None", None)
    assert (outcome.route.choice, outcome.verdict.choice, outcome.verdict.reason) == (
        "consult",
        "rollback",
        "patience",
    )
    assert [fault.stage for fault in outcome.faults] == ["patience"]
    assert outcome.calls == 3, "the call that was given up is counted"
    assert [candidate.attempt.source for candidate in outcome.candidates] == ["quick"]
    assert model.under_way == 0, "what was under way is cancelled"
    decision = asyncio.run(journal.find("last"))
    assert (decision.verdict.reason, decision.faults[0].stage) == ("patience", "patience")


@pytest.mark.parametrize("first", ["none", "stuck"])
def test_a_recall_that_hangs_costs_no_answer(first: str) -> None:
    policy = Policy(first=first, threshold=-0.5, sources=("stuck",))
    controller = Controller(
        model=Waiting(), policy=policy, sources={"stuck": MemorySource(bank=StuckBank([]))}, patience=0.1
    )
    outcome = controller.answer_sync(TASK)
    assert (outcome.answer, outcome.baseline.source, outcome.verdict.reason) == (
        "say None",
        "none",
        "patience",
    )


def test_a_signal_that_hangs_leaves_the_route_open() -> None:
    model = Waiting()
    controller = Controller(
        model=model, policy=arms.choose("notes", 0.9, 0.0, signal="ptrue"), sources={"notes": note("n")}
    )
    assert controller.answer_sync(TASK).route.reason != "patience"
    model.stuck = "Is that answer correct?"
    slow = Controller(
        model=model,
        policy=arms.choose("notes", 0.9, 0.0, signal="ptrue"),
        sources={"notes": note("n")},
        patience=0.1,
    )
    outcome = slow.answer_sync(TASK)
    assert (outcome.route.choice, outcome.route.reason, outcome.verdict) == ("keep", "patience", None)


def test_no_patience_is_refused_and_none_means_no_limit() -> None:
    with pytest.raises(PolicyError, match="set it to more than 0 seconds"):
        Controller(model=Waiting(), policy=Policy(), patience=0.0)
    Controller(model=Waiting(), policy=Policy(), patience=None)


SOURCES: dict[str, Source] = {
    "one": note("one"),
    "two": note("two"),
    "three": note("three"),
    "vote": VoteSource(),
}


@pytest.mark.parametrize(
    ("policy", "at_once", "calls"),
    [
        (Policy(threshold=-0.5, sources=("one", "two", "three"), combine="dual"), 3, 4),
        (Policy(threshold=-0.5, sources=("one", "two", "three"), combine="agree"), 2, 3),
        (Policy(threshold=-0.5, sources=("one", "two"), combine="agree"), 1, 2),
        (Policy(threshold=-0.5, sources=("one", "two"), margins={"one": 9.0, "two": 9.0}), 1, 3),
        (Policy(threshold=-0.5, sources=("vote",)), 3, 4),
        (Policy(threshold=2.0, sources=("one",), signal="agreement"), 3, 5),
    ],
)
def test_passes_that_are_made_in_any_case_run_at_once(policy: Policy, at_once: int, calls: int) -> None:
    model = Waiting()
    outcome = Controller(model=model, policy=policy, sources=SOURCES).answer_sync(TASK)
    assert (model.most, outcome.calls) == (at_once, calls)


def test_the_tokens_of_a_signals_calls_are_counted() -> None:
    model = ScriptedModel(
        script=lambda prompt: Decode(text="a", usage=Usage(prompt_tokens=10, completion_tokens=1))
    )
    policy = arms.choose("retry", 0.5, 0.0, signal="agreement")
    outcome = Controller(model=model, policy=policy).answer_sync(TASK)
    assert (outcome.calls, outcome.usage) == (4, Usage(prompt_tokens=40, completion_tokens=4))
    assert outcome.baseline.usage.prompt_tokens == 10, "the pass itself is charged for its own call only"


def test_time_of_calls_that_ran_at_once_is_not_counted_twice() -> None:
    outcome = Controller(model=Waiting(), policy=Policy(threshold=0.0, sources=("vote",)), sources=SOURCES)
    start = time.perf_counter()
    answer = outcome.answer_sync(TASK)
    assert 0 <= answer.overhead_seconds <= answer.seconds <= time.perf_counter() - start


def test_answer_sync_works_inside_a_running_event_loop() -> None:
    controller = Controller(model=ScriptedModel(script={"What is it?": "blue"}), policy=Policy())

    async def notebook() -> str:
        return controller.answer_sync(TASK).answer

    assert asyncio.run(notebook()) == "blue"


def test_a_store_that_another_process_keeps_locked_delays_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "heedful.db"
    journal = SqliteJournal(Database(path))
    controller = Controller(
        model=ScriptedModel(script={"What is it?": "blue"}), policy=Policy(), journal=journal, patience=0.1
    )
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        outcome = controller.answer_sync(TASK)
        still_locked = other.in_transaction
        other.execute("ROLLBACK")
    assert (outcome.answer, still_locked) == ("blue", True)
    assert [fault.stage for fault in outcome.faults] == ["journal"]


@pytest.mark.parametrize("patience", [0, -1.0, float("nan"), "60"])
def test_patience_is_a_time_above_0(patience: Any) -> None:
    with pytest.raises(PolicyError, match="set it to more than 0 seconds"):
        Controller(model=ScriptedModel(script={}), policy=arms.never(), patience=patience)
