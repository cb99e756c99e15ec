"""What each kind of feedback proves."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from heedful import (
    Controller,
    Database,
    MemoryBank,
    MemorySource,
    Outcome,
    Policy,
    PolicyError,
    ScriptedModel,
    SqliteFeedback,
    SqliteJournal,
    SqliteStore,
    Task,
    UsageError,
    arms,
    new_entry,
)
from heedful.benchmarks.metrics import same_text
from heedful.decisions import decision_of
from heedful.feedback import answer_feedback, evidence_of, grade_feedback, preference_feedback
from heedful.models.scripted import Reply
from heedful.records import Decision, Feedback
from heedful.types import Evidence, Prompt

NOTE = new_entry("The sky is green.", kind="fact", id="sky")
GATE = arms.gate("notes", 0.0)


def says(first: str, with_memory: str) -> ScriptedModel:
    def reply(prompt: Prompt) -> Reply:
        noted = any(NOTE.text in message.content for message in prompt.messages)
        return (with_memory if noted else first), -0.5

    return ScriptedModel(script=reply)


def decide(
    first: str = "blue",
    with_memory: str = "green",
    *,
    policy: Policy = GATE,
    journal: SqliteJournal | None = None,
    coins: Sequence[float] = (),
    question: str = "What colour is the sky?",
) -> Outcome:
    """One answer, with the first and the second pass as given; `coins` are the draws of the trial."""
    bank = MemoryBank("colours", [NOTE], method="bm25")
    draws = iter(coins)
    controller = Controller(
        model=says(first, with_memory),
        policy=policy,
        sources={"notes": MemorySource(bank=bank)},
        journal=journal,
        explore=0.5 if coins else 0.0,
        chance=lambda: next(draws),
    )
    return controller.answer_sync(Task(question=question))


def made(**settings: str) -> Decision:
    return decision_of(decide(**settings), at=1.0)  # type: ignore[arg-type]


def answered(decision: Decision, answer: str) -> Feedback:
    return answer_feedback(decision, answer, "text", same_text)


def utilities(decision: Decision, *given: Feedback) -> list[float]:
    evidence = evidence_of(decision, given)
    assert set(evidence) <= {"colours"}
    return [seen.utility for seen in evidence.get("colours", [])]


@pytest.mark.parametrize(
    ("first", "with_memory", "utility"),
    [("blue", "green", -1.0), ("green", "blue", 1.0), ("red", "green", 0.0), ("blue", "Blue.", 0.0)],
)
def test_a_known_answer_is_paired_evidence_about_every_recalled_entry(
    first: str, with_memory: str, utility: float
) -> None:
    decision = made(first=first, with_memory=with_memory)
    feedback = answered(decision, "blue")
    assert evidence_of(decision, [feedback])["colours"] == [
        Evidence(
            entry="sky", version=NOTE.digest, task=decision.task.id, utility=utility, decision=decision.id
        )
    ]


def test_a_known_answer_grades_a_rejected_pass_too() -> None:
    outcome = decide(policy=arms.choose("notes", 0.0, 9.0))
    decision = decision_of(outcome, at=1.0)
    assert decision.answer == "blue"
    assert utilities(decision, answered(decision, "green")) == [1.0]


def test_a_known_answer_grades_a_memory_first_answer_only_beside_a_pass_without_memory() -> None:
    alone = decision_of(decide(policy=arms.always("notes")), at=1.0)
    assert utilities(alone, answered(alone, "green")) == []
    both = Policy(first="notes", threshold=0.0, sources=("none",))
    paired = decision_of(decide(policy=both), at=1.0)
    assert utilities(paired, answered(paired, "green")) == [1.0]


def test_a_metric_that_fails_is_named() -> None:
    def broken(answer: str, target: str) -> bool:
        raise KeyError("no")

    with pytest.raises(UsageError, match="the metric mine fails on decision"):
        answer_feedback(made(), "blue", "mine", broken)


@pytest.mark.parametrize(("preferred", "utility"), [("first", -1.0), ("tie", 0.0), ("memory", 1.0)])
def test_a_preference_is_paired_evidence(preferred: str, utility: float) -> None:
    decision = made()
    assert utilities(decision, preference_feedback(decision, preferred)) == [utility]


def test_a_preference_without_two_answers_is_refused() -> None:
    decision = decision_of(decide(policy=arms.never()), at=1.0)
    with pytest.raises(UsageError, match="has no pair of answers"):
        preference_feedback(decision, "memory")
    with pytest.raises(UsageError, match="'both' is not a preference"):
        preference_feedback(made(), "both")


@pytest.mark.parametrize("right", [True, False])
def test_right_or_wrong_about_the_final_answer_alone_proves_nothing(right: bool) -> None:
    decision = made()
    assert utilities(decision, grade_feedback(decision, right)) == []


@pytest.mark.parametrize(
    ("coin", "answer", "right", "utility"),
    [
        (0.4, "green", True, 1.0),
        (0.4, "green", False, -1.0),
        (0.6, "blue", True, -1.0),
        (0.6, "blue", False, 1.0),
    ],
)
def test_in_a_trial_the_coin_makes_a_grade_evidence(
    coin: float, answer: str, right: bool, utility: float, store: SqliteStore
) -> None:
    journal = SqliteJournal(store.database)
    outcome = decide(journal=journal, coins=(0.1, coin))
    assert (outcome.answer, outcome.faults) == (answer, ())
    decision = asyncio.run(journal.find(outcome.decision))
    assert decision.trial is not None
    assert (decision.trial.allowed, decision.trial.accepted) == (coin < 0.5, 0)
    assert utilities(decision, grade_feedback(decision, right)) == [utility]
    verdict = decision.verdict
    assert verdict is not None
    assert verdict.reason == ("gate" if coin < 0.5 else "held out")


def test_in_a_trial_two_equal_answers_are_no_difference(store: SqliteStore) -> None:
    outcome = decide(with_memory="Blue.", journal=SqliteJournal(store.database), coins=(0.1, 0.4))
    decision = decision_of(outcome, at=1.0)
    assert utilities(decision, grade_feedback(decision, True)) == [0.0]


def test_in_a_trial_an_answer_that_was_rolled_back_anyway_proves_nothing(store: SqliteStore) -> None:
    journal = SqliteJournal(store.database)
    outcome = decide(policy=arms.choose("notes", 0.0, 9.0), journal=journal, coins=(0.1, 0.6))
    decision = decision_of(outcome, at=1.0)
    assert decision.verdict is not None
    assert decision.verdict.reason == "margin"
    assert utilities(decision, grade_feedback(decision, True)) == []


def test_the_coin_is_on_disk_before_anything_is_decoded(store: SqliteStore) -> None:
    journal = SqliteJournal(store.database)
    begun: list[int] = []
    model = says("blue", "green")
    reply = model.script
    assert callable(reply)

    def listening(prompt: Prompt) -> Reply:
        with Database(store.database.path).reading() as connection:
            begun.append(connection.execute("SELECT count(*) FROM trials").fetchone()[0])
        return reply(prompt)

    controller = Controller(
        model=ScriptedModel(script=listening), policy=arms.never(), journal=journal, explore=1.0
    )
    controller.answer_sync(Task(question="?"))
    assert begun == [1]


def test_a_journal_that_cannot_keep_the_coin_costs_the_trial_not_the_answer(store: SqliteStore) -> None:
    class Full(SqliteJournal):
        async def announce(self, decision: str, trial: object) -> None:
            raise OSError("full")

    outcome = decide(journal=Full(store.database), coins=(0.1, 0.6))
    assert (outcome.answer, outcome.trial) == ("green", None)
    assert [fault.stage for fault in outcome.faults] == ["journal"]


@pytest.mark.parametrize("explore", [-0.1, 1.1, float("nan"), 0.5])
def test_a_share_that_cannot_be_or_has_no_journal_is_refused(explore: float) -> None:
    with pytest.raises(PolicyError, match="explore is"):
        Controller(model=says("a", "b"), policy=arms.never(), explore=explore)


def kept(store: SqliteStore) -> list[tuple[str, float]]:
    return [(seen.decision, seen.utility) for seen in asyncio.run(store.evidence("colours"))]


@pytest.fixture
def give(store: SqliteStore) -> Callable[[Feedback], bool]:
    desk = SqliteFeedback(store.database)
    return lambda feedback: asyncio.run(desk.give(feedback)).new


def recorded(store: SqliteStore) -> Decision:
    journal = SqliteJournal(store.database)
    return asyncio.run(journal.find(decide(journal=journal).decision))


def test_feedback_that_is_sent_twice_counts_once(
    store: SqliteStore, give: Callable[[Feedback], bool]
) -> None:
    decision = recorded(store)
    assert [give(answered(decision, "green")) for _ in range(3)] == [True, False, False]
    assert kept(store) == [(decision.id, 1.0)]


def test_corrected_feedback_replaces_its_evidence_and_the_strongest_kind_counts(
    store: SqliteStore, give: Callable[[Feedback], bool]
) -> None:
    decision = recorded(store)
    own = Evidence(entry="sky", version=NOTE.digest, task="mine", utility=1.0, decision=decision.id)
    asyncio.run(store.observe("colours", [own]))
    give(preference_feedback(decision, "memory"))
    assert kept(store) == [(decision.id, 1.0), (decision.id, 1.0)]
    give(answered(decision, "blue"))
    give(preference_feedback(decision, "tie"))
    give(grade_feedback(decision, True))
    assert kept(store) == [(decision.id, 1.0), (decision.id, -1.0)], "a known answer outweighs the rest"
    give(answered(decision, "green"))
    assert kept(store) == [(decision.id, 1.0), (decision.id, 1.0)]
    given = asyncio.run(SqliteFeedback(store.database).of([decision]))[decision.id]
    assert {one.kind: one.value for one in given} == {
        "answer": "green",
        "grade": "right",
        "preference": "tie",
    }


def test_feedback_on_an_unknown_decision_is_refused(
    store: SqliteStore, give: Callable[[Feedback], bool]
) -> None:
    decision = replace(made(), id="nobody")
    with pytest.raises(UsageError, match="'nobody' is not a recorded decision"):
        give(grade_feedback(decision, True))
    assert kept(store) == []


def test_a_store_of_the_version_before_feedback_is_upgraded(tmp_path: Path) -> None:
    import sqlite3

    from heedful.memory import database as schema

    path = tmp_path / "old.db"
    old = sqlite3.connect(path)
    old.executescript(schema.SCHEMA + schema.REVISIONS)
    values = (1.0, "colours", "sky", NOTE.digest, "fact", NOTE.text, "", "[]", "")
    old.execute(
        "INSERT INTO entries (at, bank, id, digest, kind, text, response, tags, source) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        values,
    )
    old.execute("PRAGMA user_version=2")
    old.commit()
    old.close()
    store = SqliteStore(Database(path))
    assert asyncio.run(store.entries("colours")) == [NOTE]
    decision = recorded(store)
    assert asyncio.run(SqliteFeedback(store.database).give(answered(decision, "green"))).new
