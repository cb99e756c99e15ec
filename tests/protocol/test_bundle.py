"""A bundle answers as the study's replay says."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from heedful import Controller, EmbeddedModel, LockError, ScriptedModel, UsageError
from heedful.protocol.bundle import check_moved, read_bundle, write_bundle
from heedful.protocol.export import export_study, study_bundle
from heedful.protocol.lock import read_lock
from heedful.protocol.replay import PolicyReplay, Replayer
from heedful.protocol.setup import StudySetup, prepare
from heedful.protocol.workflow import fit_study, lock_study, open_test_side, record, side_table
from heedful.protocol.workspace import Workspace, open_workspace
from heedful.types import Outcome, Policy
from tests.making import PreparedStudy
from tests.protocol.shelves import STUDY, nobody, shelf_model, through_lock, written

FAMILIES = ("gate", "choose", "agree", "cascade", "dual", "value")


def both_sides(folder: Path, family: str, model: ScriptedModel) -> PreparedStudy:
    """A study of one family, recorded on both sides."""
    fit = f'[fit]\nsignals = ["mean"]\nfamilies = ["{family}"]\nfolds = 3\ncost = 0.001\n'
    space, setup = through_lock(written(folder, STUDY.partition("[fit]")[0] + fit), model)
    asyncio.run(open_test_side(space, setup, model, nobody))
    return space, setup


def answers(controller: Controller, setup: StudySetup) -> list[Outcome]:
    return [controller.answer_sync(setup.benchmark.task(item)) for item in setup.splits.test]


def assert_same(space: Workspace, setup: StudySetup, policy: Policy, outcomes: list[Outcome]) -> PolicyReplay:
    """The replay's answer, verdict and calls are those of the live answers."""
    table = side_table(space, setup, "test")
    replayer = Replayer(table)
    replayed = replayer.replay(policy)
    sources = [None if o.chosen is None else o.candidates[o.chosen].attempt.source for o in outcomes]
    chosen = [-1 if source is None else policy.sources.index(source) for source in sources]
    assert chosen == replayed.chosen.tolist()
    assert [o.route.choice == "consult" for o in outcomes] == replayed.consulted.tolist()
    assert [o.calls for o in outcomes] == replayed.calls.tolist()
    passes = {place: table.column(name).passes for place, name in enumerate(policy.sources)}
    passes[-1] = replayer.first(policy.first).passes
    assert [o.answer for o in outcomes] == [passes[at][row].answer for row, at in enumerate(chosen)]
    return replayed


@pytest.mark.parametrize("family", FAMILIES)
def test_a_bundle_answers_every_test_row_as_the_replay_says(family: str, tmp_path: Path) -> None:
    model = shelf_model()
    space, setup = both_sides(tmp_path, family, model)
    policy = read_lock(space.lock).policy
    write_bundle(tmp_path / "mine.policy", export_study(space))
    outcomes = answers(Controller.from_bundle(tmp_path / "mine.policy", model=model, strict=True), setup)
    replayed = assert_same(space, setup, policy, outcomes)
    assert policy.first != "none" or replayed.consulted.any(), "the policy uses memory"
    assert_same(space, setup, policy, answers(Controller.from_study(space.folder, model=model), setup))


CAPITALS = {  # a model cannot know a made-up land, so the fit side prefers the notes whatever the noise
    "fit": {"Marundia": "Sepolt", "Galdora": "Minster", "Kestria": "Dolven", "Sylvania": "Bratok"},
    "test": {"Italy": "Rome", "Ozland": "Emerald", "Egypt": "Cairo"},
}
ENGINE_STUDY = """
name = "capitals"
[questions]
fit = "fit.jsonl"
test = "test.jsonl"
metric = "contains"
instructions = "Answer in a few words."
max_tokens = 12
[model]
slots = 4
[sources.notes]
bank = "notes.txt"
[fit]
signals = ["mean"]
families = ["gate", "choose"]
firsts = ["none"]
calibrated = false
folds = 2
cost = 0.0
"""


@pytest.mark.engine
def test_with_the_embedded_model_a_study_answers_as_its_replay_says(
    engine: EmbeddedModel, tmp_path: Path
) -> None:
    for side, capitals in CAPITALS.items():
        rows = [
            {"id": land, "question": f"What is the capital of {land}?", "answer": city}
            for land, city in capitals.items()
        ]
        (tmp_path / f"{side}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    notes = [f"{land}'s capital is {city}." for part in CAPITALS.values() for land, city in part.items()]
    (tmp_path / "notes.txt").write_text("\n".join(notes))
    (tmp_path / "study.toml").write_text(ENGINE_STUDY)
    space = open_workspace(tmp_path / "study.toml", tmp_path / "out")
    setup = prepare(space.study, None)
    asyncio.run(record(space, setup, engine, "fit", nobody))
    fit_study(space, setup)
    asyncio.run(lock_study(space, setup, engine))
    asyncio.run(open_test_side(space, setup, engine, nobody))
    policy = read_lock(space.lock).policy
    controller = Controller.from_study(space.folder, model=engine, strict=True)
    questions = [controller.answer_sync(item.question) for item in setup.splits.test]
    replayed = assert_same(space, setup, policy, questions)
    assert 0 < replayed.consulted.sum() < len(questions), "the policy consults the notes when it is unsure"


def test_a_question_as_text_gets_the_study_s_instructions_and_pattern(tmp_path: Path) -> None:
    told = 'metric = "text"\ninstructions = "Name the item."\nanswer_pattern = "item\\\\d"\nmax_tokens = 9'
    file = written(tmp_path, STUDY.replace('metric = "text"', told))
    space, _ = through_lock(file, shelf_model())
    controller = Controller.from_study(space.folder, model=shelf_model())
    task = controller.answer_sync("What is on shelf 1003?").task
    assert (task.instructions, task.answer_pattern, task.max_tokens) == ("Name the item.", "item\\d", 9)


def test_a_bundle_is_read_back_as_it_was_written(locked: PreparedStudy, tmp_path: Path) -> None:
    bundle = export_study(locked[0])
    write_bundle(tmp_path / "mine.policy", bundle)
    assert read_bundle(tmp_path / "mine.policy") == bundle


def test_an_edited_bundle_and_another_file_are_refused(locked: PreparedStudy, tmp_path: Path) -> None:
    file = tmp_path / "mine.policy"
    write_bundle(file, export_study(locked[0]))
    fields = json.loads(file.read_text())
    file.write_text(json.dumps({**fields, "study": "other"}))
    with pytest.raises(LockError, match="was edited"):
        read_bundle(file)
    file.write_text("{}")
    with pytest.raises(UsageError, match="is not a bundle"):
        read_bundle(file)


def test_a_bank_that_moved_is_named_and_is_neither_exported_nor_used_strictly(
    locked: PreparedStudy, caplog: pytest.LogCaptureFixture
) -> None:
    space, _ = locked
    notes = space.folder / "notes.txt"
    notes.write_text(notes.read_text() + "\nShelf 5000 holds item9.\n")
    assert {"bank notes", "bank other"} >= set(study_bundle(space).moved) != set()
    with pytest.raises(LockError, match="changed since desk was locked"):
        export_study(space)
    with pytest.raises(LockError, match="bank"):
        Controller.from_study(space.folder, model=shelf_model(), strict=True)
    Controller.from_study(space.folder, model=shelf_model())
    assert "changed since desk was locked: bank" in caplog.text


def test_another_model_is_named(locked: PreparedStudy) -> None:
    bundle = export_study(locked[0])
    model = shelf_model()
    assert asyncio.run(check_moved(bundle, model, strict=True)) == []
    model.traits = replace(model.traits, fingerprint="changed-weights")
    assert "model (locked: scripted" in asyncio.run(check_moved(bundle, model))[0]
    with pytest.raises(LockError, match="model"):
        asyncio.run(check_moved(bundle, model, strict=True))


def test_a_study_without_a_lock_says_what_to_run(study: Path) -> None:
    space = open_workspace(study, study.parent / "out")
    with pytest.raises(UsageError, match="run heedful study lock first"):
        study_bundle(space)
    assert prepare(space.study, None).splits.test
