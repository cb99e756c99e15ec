"""The results of leave-one-out are read from the ledgers that it recorded."""

import asyncio
from dataclasses import replace

from heedful import ScriptedModel
from heedful.experiments.credit_record import recorded_credit
from heedful.experiments.entry_credit import credit
from heedful.experiments.study_evidence import evidence_table
from heedful.experiments.variant import Experiment
from heedful.records import RecallRef
from tests.experiments.test_entry_credit import study
from tests.making import RecordedStudy

__all__ = ["study"]


def credited(study: RecordedStudy, model: ScriptedModel | None = None) -> dict[tuple[str, str], bool]:
    space, setup, own = study
    asked = Experiment(
        name="credit", space=space, setup=setup, model=model or own, source="notes", tell=lambda *told: None
    )
    asyncio.run(credit(asked))
    return recorded_credit(space, evidence_table(space, "notes"), "notes")


def test_nothing_is_known_before_leave_one_out(study: RecordedStudy) -> None:
    assert recorded_credit(study[0], evidence_table(study[0], "notes"), "notes") == {}


def test_the_entry_whose_absence_changes_the_outcome_is_credited(study: RecordedStudy) -> None:
    assert credited(study) == {
        ("red", "truth"): True,
        ("red", "noise"): False,
        ("blue", "lie"): False,
        ("blue", "echo"): False,
        ("green", "trap"): True,
        ("green", "calm"): False,
    }


def test_an_outcome_that_does_not_recur_is_nobodys(study: RecordedStudy) -> None:
    found = credited(study, ScriptedModel(script=lambda prompt: ("noon", -0.5)))
    assert (found["red", "truth"], found["red", "noise"]) == (False, False)


def test_passes_with_other_recalls_are_ignored(study: RecordedStudy) -> None:
    credited(study)
    table = evidence_table(study[0], "notes")
    column = table.column("notes")
    moved = [
        replace(row, recalls=(RecallRef(entry="truth", version="2", score=1.0),)) for row in column.passes
    ]
    changed = replace(table, columns={**table.columns, "notes": replace(column, passes=tuple(moved))})
    assert recorded_credit(study[0], changed, "notes") == {}
