"""Graded decisions become a study, and their passes are not decoded again."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from heedful import (
    Controller,
    Entry,
    MemoryBank,
    MemorySource,
    Policy,
    ScriptedModel,
    Task,
    UsageError,
    arms,
    new_entry,
)
from heedful.benchmarks.metrics import same_text
from heedful.decisions import decision_of
from heedful.feedback import answer_feedback
from heedful.models.scripted import Reply
from heedful.protocol.from_decisions import DraftCount, GradedDecision, draft_study
from heedful.protocol.ledger import Ledger
from heedful.protocol.record import outdated
from heedful.protocol.setup import prepare
from heedful.protocol.study import USUAL_SIGNALS
from heedful.protocol.workflow import fit_study, lock_study, record, recording_of
from heedful.protocol.workspace import Workspace
from heedful.types import Prompt
from tests.making import reply_of
from tests.protocol.shelves import nobody, shelf_model

NOTES = [new_entry(f"Shelf {n} holds item{n % 7}.", kind="rule") for n in range(60)]
ALWAYS_ASK = Policy(threshold=float("inf"), sources=("memory",), margins={"memory": 0.0})


def graded(
    model: ScriptedModel, shelves: Sequence[int], policy: Policy = ALWAYS_ASK, instructions: str = "Be brief."
) -> list[GradedDecision]:
    """Decisions about shelves, oldest first, each with its right answer."""
    bank = MemoryBank("shelves", NOTES, method="bm25")
    controller = Controller(model=model, policy=policy, sources={"memory": MemorySource(bank=bank)})
    rows = []
    for at, shelf in enumerate(shelves):
        task = Task(question=f"What is on shelf {shelf}?", instructions=instructions, max_tokens=64)
        decision = decision_of(controller.answer_sync(task), at=float(at))
        answer = answer_feedback(decision, f"item{shelf % 7}", "text", same_text)
        rows.append(GradedDecision(decision=decision, answer=answer))
    return rows


def entries(bank: str) -> Sequence[Entry]:
    return NOTES if bank == "shelves" else ()


def drafted(folder: Path, rows: Sequence[GradedDecision]) -> DraftCount:
    return draft_study(folder, "traffic", rows, entries, 0.25)


def test_a_policy_is_refitted_on_recorded_passes_without_decoding(tmp_path: Path) -> None:
    count = drafted(tmp_path / "s", graded(shelf_model(), range(40)))
    assert count == DraftCount(fit=30, test=10, other_settings=0, repeated=0, passes=60, banks=("shelves",))
    space = Workspace(tmp_path / "s")
    setup = prepare(space.study, None)
    model = shelf_model()
    waiting = asyncio.run(
        outdated(recording_of(setup, "fit"), Ledger(space.ledger), model.traits.fingerprint)
    )
    assert waiting == []
    fitted = fit_study(space, setup)
    assert fitted.rows == 30
    assert "shelves" in (fitted.policy.first, *fitted.policy.sources)
    lock = asyncio.run(lock_study(space, setup, model))
    assert (lock.study, model.prompts) == ("traffic", [])
    assert [item.question for item in setup.splits.test] == [f"What is on shelf {n}?" for n in range(30, 40)]


def test_only_missing_passes_are_decoded(tmp_path: Path) -> None:
    drafted(tmp_path / "s", graded(shelf_model(), range(40), arms.choose("memory", -0.5, 0.0)))
    space = Workspace(tmp_path / "s")
    setup = prepare(space.study, None)
    kept = len(Ledger(space.ledger).passes)
    assert 30 < kept < 60, "sure answers have no pass with memory"
    model = shelf_model()
    asyncio.run(record(space, setup, model, "fit", nobody))
    assert len(model.prompts) == 60 - kept + 1, "and one to try the log-probs"


def test_a_signal_that_asks_questions_of_its_own_is_kept(tmp_path: Path) -> None:
    stated = arms.choose("memory", float("inf"), 0.0, signal="stated")

    def reply(prompt: Prompt) -> Reply:
        stating = "0 to 100" in prompt.messages[-1].content
        return ("80", -0.5) if stating else reply_of(shelf_model(), prompt)

    drafted(tmp_path / "s", graded(ScriptedModel(script=reply), range(12), stated))
    space = Workspace(tmp_path / "s")
    setup = prepare(space.study, None)
    assert setup.study.fit.signals == ("stated", *USUAL_SIGNALS)
    rows = list(Ledger(space.ledger).passes.values())
    assert {row.record.signals["stated"] for row in rows} == {0.8}
    assert {row.record.signal_costs["stated"].calls for row in rows} == {1}
    fingerprint = rows[0].record.model
    assert asyncio.run(outdated(recording_of(setup, "fit"), Ledger(space.ledger), fingerprint)) == []


def test_repeated_questions_count_once_and_other_settings_are_left_out(tmp_path: Path) -> None:
    model = shelf_model()
    later = graded(model, [*range(8), 3, 3])
    rows = graded(model, range(5), instructions="Explain.")
    rows += [replace(one, decision=replace(one.decision, at=99.0 + n)) for n, one in enumerate(later)]
    count = drafted(tmp_path / "s", rows)
    assert (count.fit + count.test, count.other_settings, count.repeated) == (8, 5, 2)


def test_a_study_needs_enough_graded_decisions_a_new_folder_and_its_bank(tmp_path: Path) -> None:
    rows = graded(shelf_model(), range(8))
    with pytest.raises(UsageError, match="no decision with a known answer"):
        drafted(tmp_path / "a", [])
    with pytest.raises(UsageError, match=r"3 questions with a known answer .* are too few"):
        drafted(tmp_path / "b", rows[:3])
    with pytest.raises(UsageError, match="the store has no bank 'shelves'"):
        draft_study(tmp_path / "c", "traffic", rows, lambda bank: (), 0.25)
    drafted(tmp_path / "d", rows)
    with pytest.raises(UsageError, match="holds a study already"):
        drafted(tmp_path / "d", rows)


def test_a_task_that_no_question_file_can_hold_is_left_out(tmp_path: Path) -> None:
    rows = graded(shelf_model(), range(9))
    special = replace(rows[0].decision.task, choices=("item0", "item1"))
    rows[0] = replace(rows[0], decision=replace(rows[0].decision, task=special))
    assert drafted(tmp_path / "s", rows).other_settings == 1
