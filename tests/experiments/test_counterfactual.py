"""What the content of entries is worth: a scripted model that believes every note."""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from heedful import HeedfulError, ScriptedModel, UsageError, new_entry
from heedful.experiments.counterfactual import AGAIN, CounterfactualResult, counterfactual
from heedful.experiments.edits import Edit, made_edits, read_edits
from heedful.experiments.variant import Experiment
from heedful.models.scripted import Reply
from heedful.protocol.ledger import Ledger, Pass
from heedful.protocol.setup import prepare
from heedful.protocol.workflow import record, side_table
from heedful.protocol.workspace import open_workspace
from heedful.report.pages.counterfactual_page import counterfactual_page
from heedful.types import Prompt
from tests.making import RecordedStudy, reply_of

STUDY = """
name = "shelves"
[questions]
fit = "fit.jsonl"
test = "test.jsonl"
[sources.notes]
bank = "notes.jsonl"
recall = "bm25"
limit = 1
"""
WORDS = ["lamp", "rope", "glue", "nails", "tape", "chalk", "bolts", "cloth", "wire", "paint", "beads", "soap"]
SHELVES = len(WORDS)


def believing() -> ScriptedModel:
    """Says what the note says, and `dust` without one."""

    def reply(prompt: Prompt) -> Reply:
        note = re.search(r"holds (\w+)\.", prompt.messages[-1].content)
        return (note[1], -0.2) if note else ("dust", -0.9)

    return ScriptedModel(script=reply)


@pytest.fixture
def study(tmp_path: Path) -> RecordedStudy:
    for side in ("fit", "test"):
        rows = [
            {"id": f"{side}{n}", "question": f"What is on the {word} shelf of {side}?", "answer": word}
            for n, word in enumerate(WORDS)
        ]
        (tmp_path / f"{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    notes = [{"id": word, "text": f"The {word} shelf holds {word}.", "kind": "fact"} for word in WORDS]
    (tmp_path / "notes.jsonl").write_text("".join(json.dumps(note) + "\n" for note in notes))
    (tmp_path / "s.toml").write_text(STUDY)
    space = open_workspace(tmp_path / "s.toml", tmp_path / "out")
    setup = prepare(space.study, None)
    model = believing()
    asyncio.run(record(space, setup, model, "fit", lambda progress: None))
    return space, setup, model


def edited(tmp_path: Path, *rows: Mapping[str, str]) -> Path:
    file = tmp_path / "edits.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def asked(study: RecordedStudy, edits: Mapping[str, Edit] | int) -> CounterfactualResult:
    space, setup, model = study
    question = Experiment(
        name="counterfactual",
        space=space,
        setup=setup,
        model=model,
        source="notes",
        tell=lambda *told: None,
    )
    return asyncio.run(counterfactual(question, edits))


def passes(study: RecordedStudy, mode: str | None) -> list[Pass]:
    """The passes of the study's notes, or of the corrupted ones."""
    folder = study[0].folder
    where = folder if mode is None else folder / "counterfactual" / f"notes-corrupt-{mode}"
    return list(Ledger(where / "ledger.jsonl").of("fit", "notes"))


EDITS = [
    {"entry": "lamp", "corrupt": "The lamp shelf holds dust."},
    {"entry": "rope", "corrupt": "The rope shelf holds glue."},
    {"entry": "soap", "repair": "The soap shelf holds soap.", "corrupt": "Some other thing holds sand."},
]


def test_a_corrupted_content_costs_exactly_the_rows_that_recalled_it(
    study: RecordedStudy, tmp_path: Path
) -> None:
    entries = study[1].banks["notes"].entries()
    before = len(study[2].prompts)
    found = asked(study, read_edits(edited(tmp_path, *EDITS), entries, 0))
    worth = found.arms["always"]
    assert list(found.arms) == ["always"], "nothing is fitted yet"
    assert worth.original.value == 1
    assert worth.change["fixed", "repair"].value == 0
    assert worth.change["fixed", "corrupt"].value == pytest.approx(-3 / SHELVES)
    assert (worth.hits.rows, worth.hits.helps, worth.hits.hurts) == (found.hits, 3, 0)
    assert worth.hits.change.value == 1
    assert (worth.others.rows, worth.others.change.value) == (SHELVES - 3, 0)
    assert worth.localised == pytest.approx(1 / 8, abs=0.02), "three swaps out of three"
    assert found.same["fixed", "repair"] == found.same["fixed", "corrupt"] == 1
    changed = found.changed
    assert changed["fixed", "repair"] == changed["free", "repair"] == 0
    assert changed["fixed", "corrupt"] == found.hits == 3
    new = {
        row.record.prompt
        for version in ("free", "fixed")
        for row in passes(study, version)
        if row.record.calls
    }
    decoded = len(new - {row.record.prompt for row in passes(study, None)})
    assert len(study[2].prompts) - before == decoded + found.hits, (
        "what is as it was is not decoded again but for the hits, and what both modes ask only once"
    )
    assert worth.change[AGAIN].value == 0, "this model has no noise"
    assert found.repaired == 0


def test_recalling_again_drifts_where_the_edit_hides_the_entry(study: RecordedStudy, tmp_path: Path) -> None:
    entries = study[1].banks["notes"].entries()
    found = asked(study, read_edits(edited(tmp_path, *EDITS), entries, 0))
    assert found.same["free", "corrupt"] < 1
    worth = found.arms["always"]
    free, fixed = worth.change["free", "corrupt"].value, worth.change["fixed", "corrupt"].value
    assert worth.drift["corrupt"].value == pytest.approx(free - fixed)


def test_noise_of_the_decoder_is_told_from_an_effect(study: RecordedStudy) -> None:
    space, setup, _ = study
    entries = setup.banks["notes"].entries()
    same = {entry.id: Edit(repair=entry, corrupt=replace(entry, tags=("odd",))) for entry in entries[:6]}
    plain = believing()
    heard: list[Prompt] = []

    def wavering(prompt: Prompt) -> Reply:
        """Says something else to every other prompt."""
        heard.append(prompt)
        said = reply_of(plain, prompt)
        assert isinstance(said, tuple)
        return said if len(heard) % 2 else ("sand", said[1])

    found = asked((space, setup, ScriptedModel(script=wavering)), same)
    worth = found.arms["always"]
    assert worth.change[AGAIN].value == pytest.approx(-3 / SHELVES)
    assert worth.change["fixed", "corrupt"].value == 0, "an entry that says the same has the same prompts"


def test_asking_twice_decodes_nothing_new_and_says_the_same(study: RecordedStudy, tmp_path: Path) -> None:
    edits = read_edits(edited(tmp_path, *EDITS), study[1].banks["notes"].entries(), 0)
    first = asked(study, edits)
    before = len(study[2].prompts)
    again = asked(study, edits)
    assert len(study[2].prompts) == before
    assert again == first


def test_the_studys_own_ledger_is_left_alone(study: RecordedStudy, tmp_path: Path) -> None:
    space = study[0]
    before = space.ledger.read_bytes()
    asked(study, read_edits(edited(tmp_path, *EDITS), study[1].banks["notes"].entries(), 0))
    assert space.ledger.read_bytes() == before
    kept = Ledger(space.folder / "counterfactual" / "notes-corrupt-fixed" / "ledger.jsonl")
    assert len(kept.passes) == 2 * SHELVES


def test_rows_that_differ_without_an_edited_entry_void_the_comparison(
    study: RecordedStudy, tmp_path: Path
) -> None:
    edits = read_edits(edited(tmp_path, *EDITS), study[1].banks["notes"].entries(), 0)
    asked(study, edits)
    folder = study[0].folder / "counterfactual" / "notes-corrupt-fixed"
    ledger = Ledger(folder / "ledger.jsonl")
    row = ledger.passes["fit", 0, "notes", "fit3"]
    row = replace(row, record=replace(row.record, text="tampered", answer="tampered"))
    with ledger:
        ledger.append(row)
    with pytest.raises(HeedfulError, match="fit3 recalled no edited entry"):
        asked(study, edits)


def test_edits_are_made_for_what_was_recalled(study: RecordedStudy) -> None:
    space, setup, _ = study
    table = side_table(space, setup, "fit")
    entries = setup.banks["notes"].entries()
    with pytest.raises(UsageError, match="can be damaged"):
        made_edits(table, "notes", entries, 3, 0)
    numbered = list(entries)
    numbered[0] = replace(numbered[0], text="The lamp shelf holds 3 lamps.")
    made = made_edits(table, "notes", numbered, 3, 0)
    assert list(made) == ["lamp"]
    assert made["lamp"].repair == numbered[0]
    assert made["lamp"].corrupt.text != numbered[0].text


def test_a_repair_without_a_corrupt_version_is_damaged_itself(tmp_path: Path) -> None:
    entry = new_entry("How many are left of 14 after 8?", kind="exemplar", response="6", id="left")
    file = tmp_path / "edits.jsonl"
    file.write_text('{"entry": "left", "repair": "14 - 8 = 6. Answer: 6"}')
    edit = read_edits(file, [entry], 0)["left"]
    assert edit.repair.response == "14 - 8 = 6. Answer: 6"
    assert edit.corrupt.response == "14 + 8 = 22. Answer: 22"


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([{"entry": "zzz"}], "'zzz', which is not in the bank"),
        ([{"entri": "lamp"}], "is not an edit"),
        ([], "holds no edits"),
    ],
)
def test_edits_that_make_no_sense_are_refused(
    study: RecordedStudy, tmp_path: Path, rows: list[dict[str, str]], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        read_edits(edited(tmp_path, *rows), study[1].banks["notes"].entries(), 0)


def test_the_page_says_what_was_found(study: RecordedStudy, tmp_path: Path) -> None:
    edits = read_edits(edited(tmp_path, *EDITS), study[1].banks["notes"].entries(), 0)
    page = counterfactual_page("shelves", asked(study, edits))
    assert "3 of 12 rows of the fit side had recalled at least one of them" in page.text
    change = page.summary["arms"]["always"]["change"]
    assert (change["fixed-repair"]["value"], change["fixed-corrupt"]["value"]) == (0, pytest.approx(-0.25))
    assert "<svg" in page.figures[0].svg
