"""Entries recalled together share an outcome; leaving one out tells who carried it."""

import asyncio
import json
from pathlib import Path

import pytest

from heedful import ScriptedModel
from heedful.experiments.entry_credit import credit
from heedful.experiments.variant import Experiment
from heedful.models.scripted import Reply
from heedful.protocol.ledger import Ledger
from heedful.protocol.setup import prepare
from heedful.protocol.workflow import record
from heedful.report.pages.credit_page import credit_page
from heedful.types import Prompt
from tests.making import RecordedStudy, record_study

STUDY = """
name = "desk"
[questions]
fit = "q.jsonl"
test = "t.jsonl"
[sources.notes]
bank = "notes.jsonl"
recall = "bm25"
limit = 2
"""
NOTES = {
    "truth": "The red desk opens at seven.",
    "noise": "The red desk has drawers.",
    "lie": "The blue desk opens at nine.",
    "echo": "The blue desk opens at nine o'clock, yes nine.",
    "trap": "The green desk opens at nine.",
    "calm": "The green desk is old.",
}


def reply(prompt: Prompt) -> Reply:
    """Believes `seven` and `nine` in its notes; knows the green desk by itself."""
    said = prompt.messages[-1].content
    notes = said.partition("Notes that may help")[2]
    if "nine" in notes:
        return ("nine", -0.2)
    return ("seven" if "seven" in notes or "green" in said or "blue" in said else "noon", -0.5)


@pytest.fixture
def study(tmp_path: Path) -> RecordedStudy:
    asked, last = (
        [{"id": word, "question": f"When does the {word} desk open?", "answer": "seven"} for word in words]
        for words in (("red", "blue", "green"), ("black",))
    )
    notes = [{"id": id, "text": text, "kind": "fact"} for id, text in NOTES.items()]
    return record_study(tmp_path, STUDY, {"q": asked, "t": last, "notes": notes}, reply)


def test_a_row_on_which_nothing_was_recalled_is_no_outcome_of_memory(study: RecordedStudy) -> None:
    space, setup, model = study
    for name, colour in (("q", "green"), ("t", "blue")):
        file = space.folder / f"{name}.jsonl"
        row = {"id": f"{name}-sky", "question": f"Why {colour}?", "answer": "seven"}
        file.write_text(file.read_text() + json.dumps(row) + "\n")
    (space.folder / "notes.jsonl").write_text(
        json.dumps({"id": "truth", "text": "A red desk opens at seven.", "kind": "fact"}) + "\n"
    )
    setup = prepare(space.study, None)
    asyncio.run(record(space, setup, model, "fit", lambda progress: None))
    asked = Experiment(
        name="credit", space=space, setup=setup, model=model, source="notes", tell=lambda *told: None
    )
    silent = Ledger(space.ledger).passes["fit", 0, "notes", "q-sky"]
    assert (silent.record.status, Ledger(space.ledger).passes["fit", 0, "none", "q-sky"].right) == (
        "nothing",
        True,
    )
    assert asyncio.run(credit(asked)).rows == 1


def test_the_entry_whose_absence_turns_the_outcome_round_carries_it(study: RecordedStudy) -> None:
    space, setup, model = study
    before = len(model.prompts)
    asked = Experiment(
        name="credit", space=space, setup=setup, model=model, source="notes", tell=lambda *told: None
    )
    found = asyncio.run(credit(asked))
    by_entry = {one.entry: one for one in found.entries}
    assert found.rows == 3
    truth, noise, trap, calm = (by_entry[name] for name in ("truth", "noise", "trap", "calm"))
    assert (truth.helps, truth.carried_helps) == (1, 1)
    assert (noise.helps, noise.carried_helps) == (1, 0)
    assert (trap.hurts, trap.carried_hurts) == (1, 1)
    assert (calm.hurts, calm.carried_hurts) == (1, 0)
    assert by_entry["lie"].carried_hurts == by_entry["echo"].carried_hurts == 0
    assert found.shared == 1, "two liars: neither carries it alone"
    assert found.entries[0].entry == "trap"
    assert len(model.prompts) - before == found.calls == 3 + 6
    assert found.unstable == 0
    text = credit_page("desk", found).text
    assert "on 1 it persists whichever entry is left out" in text


def test_an_outcome_that_does_not_come_back_credits_nobody(study: RecordedStudy) -> None:
    space, setup, _ = study
    calm = ScriptedModel(script=lambda prompt: ("noon", -0.5))
    asked = Experiment(
        name="credit", space=space, setup=setup, model=calm, source="notes", tell=lambda *told: None
    )
    found = asyncio.run(credit(asked))
    assert (found.rows, found.unstable, found.calls) == (3, 1, 3 + 4)
    assert not {"truth", "noise"} & {one.entry for one in found.entries}, "the help did not come back"
    assert "On 1 of them the change did not recur" in credit_page("desk", found).text
