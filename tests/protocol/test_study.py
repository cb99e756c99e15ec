"""A whole study with the scripted model, and what stops one."""

import asyncio
import json
import random
import shutil
from dataclasses import replace

import pytest
from msgspec.structs import replace as replace_struct

from heedful import (
    LeakError,
    LockError,
    LogprobError,
    MissingError,
    ModelError,
    ScriptedModel,
    UsageError,
    new_entry,
)
from heedful.decisions import policy_fields, read_policy
from heedful.models.scripted import SCRIPTED
from heedful.protocol.ledger import Ledger
from heedful.protocol.lock import moved, read_journal
from heedful.protocol.setting import prepare
from heedful.protocol.splits import Splits
from heedful.protocol.status import status_of
from heedful.protocol.steps import fit_study, lock_study, open_test_side, record, verify_lock
from heedful.protocol.table import read_table
from heedful.protocol.workspace import open_workspace, read_json, write_json
from heedful.report.build import build_report
from heedful.report.material import gather
from heedful.types import Item, Policy

ROWS = 100
"""Questions on each side."""

STUDY = """
name = "desk"
[questions]
fit = "fit.jsonl"
test = "test.jsonl"
metric = "text"
[sources.notes]
bank = "notes.txt"
[sources.other]
bank = "notes.txt"
placement = "before"
[sources.retry]
kind = "retry"
[sources.reflect]
kind = "reflect"
[sources.vote]
kind = "vote"
[sources.verify]
kind = "verify"
[fit]
signals = ["mean", "min"]
"""


QUICK = STUDY.replace(
    'signals = ["mean", "min"]',
    'signals = ["mean"]\nfamilies = ["gate", "choose"]\ncalibrated = false\nfolds = 3',
)


def written(folder, text):
    """Questions about numbered shelves; every note tells one shelf's content."""
    for side, start in (("fit", 0), ("test", 1000)):
        shelves = range(start, start + ROWS)
        rows = [
            {"id": f"s{n}", "question": f"What is on shelf {n}?", "answer": f"item{n % 7}"} for n in shelves
        ]
        (folder / f"{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    notes = [f"Shelf {n} holds item{n % 7}." for n in (*range(ROWS), *range(1000, 1000 + ROWS))]
    (folder / "notes.txt").write_text("\n".join(notes))
    (folder / "desk.toml").write_text(text)
    return folder / "desk.toml"


@pytest.fixture
def study(tmp_path):
    return written(tmp_path, STUDY)


@pytest.fixture(scope="module")
def once_locked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("locked")
    through_lock(written(folder, QUICK), shelf_model())
    return folder


@pytest.fixture
def locked(once_locked, tmp_path):
    """A locked study of its own for each test."""
    shutil.copytree(once_locked, tmp_path / "copy")
    space = open_workspace(tmp_path / "copy" / "out", None)
    return space, prepare(space.study, None)


def shelf_model(**settings):
    """Right with the note and now and then without; sure when right, mostly."""

    def reply(prompt):
        text = " ".join(m.content for m in prompt.messages if m.role == "user")
        shelf = int("".join(c for c in text.partition("shelf ")[2].partition("?")[0] if c.isdigit()))
        draw = random.Random(f"{shelf} {'holds' in text} {prompt.temperature}")
        right = draw.random() < (0.9 if f"Shelf {shelf} holds" in text else 0.4)
        if "correct?" in prompt.messages[-1].content:
            return "yes" if right else "no"
        return (f"item{shelf % 7}" if right else "item9", -0.2 - 0.5 * draw.random() - 0.4 * (not right))

    return ScriptedModel(script=reply, **settings)


def nobody(progress):
    pass


def through_lock(file, model):
    space = open_workspace(file, file.parent / "out")
    setting = prepare(space.study, None)
    asyncio.run(record(space, setting, model, "fit", nobody))
    fit_study(space, setting)
    asyncio.run(lock_study(space, setting, model))
    return space, setting


def test_a_study_runs_from_its_file_to_an_opened_test_side(study):
    model = shelf_model()
    space, setting = through_lock(study, model)
    fitted = read_json(space.fit, "")
    assert read_policy(fitted["policy"]).sources or fitted["kind"]["family"] == "always"
    assert fitted["objective"] > 0.7
    assert abs(fitted["optimism"]) < 0.1
    assert not any(row.side == "test" for row in Ledger(space.ledger).passes.values())
    asyncio.run(open_test_side(space, setting, model, nobody))
    ledger = Ledger(space.ledger)
    assert len(ledger.passes) == 2 * ROWS * 7
    asked = 1 + 1  # one question more before each side, to see whether the log-probs make sense
    assert sum(row.calls for row in ledger.passes.values()) == len(model.prompts) - asked
    found = status_of(space, setting)
    assert (found["locked"], found["test_openings"], found["seconds_left"]) == (True, 1, 0)


def test_a_second_opening_is_logged_and_costs_no_call(locked):
    model = shelf_model()
    space, setting = locked
    asyncio.run(open_test_side(space, setting, model, nobody))
    before = len(model.prompts)
    asyncio.run(open_test_side(space, setting, model, nobody))
    assert len(model.prompts) == before + 1
    assert [e["event"] for e in read_journal(space.journal)].count("opened the test side") == 2


def test_going_on_after_an_interruption_is_not_another_opening(locked):
    space, setting = locked
    whole, asked = shelf_model(), []

    def breaks_off(prompt):
        asked.append(prompt)
        return ModelError("gone") if len(asked) > 3 * ROWS - 10 else whole.script(prompt)

    with pytest.raises(ModelError):
        asyncio.run(open_test_side(space, setting, ScriptedModel(script=breaks_off), nobody))
    whole_arms = read_table(Ledger(space.ledger), "test", [item.id for item in setting.splits.test], [0])
    assert list(whole_arms.columns) == ["none", "notes"], "one source after the other"
    asyncio.run(open_test_side(space, setting, whole, nobody))
    events = [event["event"] for event in read_journal(space.journal)]
    assert events == [
        "locked",
        "opened the test side",
        "went on recording the test side",
        "recorded the whole test side",
    ]
    assert status_of(space, setting)["test_openings"] == 1


def test_an_endpoint_that_fails_at_once_does_not_open_the_test_side(locked):
    space, setting = locked
    asleep = ScriptedModel(script=lambda prompt: ModelError("asleep"))
    with pytest.raises(ModelError):
        asyncio.run(open_test_side(space, setting, asleep, nobody))
    assert [event["event"] for event in read_journal(space.journal)] == ["locked"]


def test_another_metric_grades_again_without_a_call_and_another_pattern_decodes_again(study):
    text = STUDY.partition("[sources.other]")[0]
    study.write_text(text.replace('metric = "text"', 'metric = "exact"\nanswer_pattern = "(item)"'))
    model = shelf_model()

    def recorded():
        space = open_workspace(study, study.parent / "out")
        before = len(model.prompts)
        ledger = asyncio.run(record(space, prepare(space.study, None), model, "fit", nobody))
        return sum(row.right for row in ledger.passes.values()), len(model.prompts) - before - 1

    assert recorded() == (0, 2 * ROWS)
    study.write_text(text.replace('metric = "text"', 'metric = "contains"\nanswer_pattern = "(item)"'))
    assert recorded() == (0, 0)
    study.write_text(text)
    right, asked = recorded()
    assert right > 2 / 3 * ROWS
    assert asked == 2 * ROWS, "the answer stands elsewhere, so its signals have to be measured anew"
    study.write_text(text.replace('metric = "text"', 'metric = "number"'))
    assert recorded()[1] == 0


def test_a_change_of_the_metric_breaks_the_lock(locked):
    space, setting = locked
    study = replace_struct(setting.study, questions=replace_struct(setting.study.questions, metric="exact"))
    model = shelf_model()
    lock = read_json(space.lock, "")
    assert moved(lock, replace(setting, study=study), model.traits, None, Ledger(space.ledger)) == ["grading"]


@pytest.mark.parametrize("change", ["entry", "placement", "model", "targets", "pattern", "scores"])
def test_passes_of_another_bank_prompt_or_model_are_not_locked(study, change):
    study.write_text(QUICK)
    space = open_workspace(study, study.parent / "out")
    model = shelf_model()
    asyncio.run(record(space, prepare(space.study, None), model, "fit", nobody))
    if change == "entry":
        notes = space.folder / "notes.txt"
        notes.write_text(notes.read_text() + "\nShelf 3 of the shelf 3 is what is on shelf 3.")
    elif change == "placement":
        space.study.write_text(
            space.study.read_text().replace('placement = "before"', 'placement = "system"')
        )
    elif change == "model":
        model = replace(model, traits=replace(SCRIPTED, fingerprint="another"))
    elif change == "targets":
        file = space.folder / "fit.jsonl"
        file.write_text(file.read_text().replace('"item1"', '"item2"'))
    elif change == "pattern":
        space.study.write_text(
            space.study.read_text().replace("[sources", 'answer_pattern = "(item)"\n[sources', 1)
        )
    else:  # the same recalls everywhere, scored otherwise: words of a bank have become rarer
        notes = space.folder / "notes.txt"
        notes.write_text(notes.read_text() + "\n" + "\n".join(f"Box {n} is full of figs." for n in range(99)))
    setting = prepare(space.study, None)
    fit_study(space, setting)
    with pytest.raises(LockError, match="another bank, prompt, model or way of grading"):
        asyncio.run(lock_study(space, setting, model))


def test_test_passes_that_were_there_before_the_lock_are_told(locked, tmp_path):
    space, setting = locked
    model = shelf_model()
    asyncio.run(open_test_side(space, setting, model, nobody))
    again = open_workspace(space.folder.parent / "desk.toml", tmp_path / "again")
    shutil.copyfile(space.ledger, again.ledger)
    setting = prepare(again.study, None)
    fit_study(again, setting)
    asyncio.run(lock_study(again, setting, model))
    asyncio.run(open_test_side(again, setting, model, nobody))
    seen = sum(row.side == "test" for row in Ledger(space.ledger).passes.values())
    assert seen > 0
    assert read_json(space.lock, "")["test_passes"] == 0
    assert read_json(again.lock, "")["test_passes"] == seen
    assert "had been recorded before the policy was locked" not in build_report(space).text
    assert build_report(again).text.startswith(f"{seen:,} passes of the test side had been recorded before")


def test_every_choice_under_a_harm_limit_is_counted(study):
    study.write_text(QUICK + "harm_limit = 0.2\n")
    space, _ = through_lock(study, shelf_model())
    assert read_json(space.lock, "")["choices"] == 1
    again = open_workspace(study, study.parent / "again")
    shutil.copyfile(space.ledger, again.ledger)
    for seed in (0, 1, 1, 2):
        text = space.study.read_text()
        again.study.write_text(f"{text}seed = {seed}\n" if seed else text)
        setting = prepare(again.study, None)
        fit_study(again, setting)
    model = shelf_model()
    asyncio.run(lock_study(again, setting, model))
    assert read_json(again.lock, "")["choices"] == 3, "the same choice made twice is one"
    asyncio.run(open_test_side(again, setting, model, nobody))
    build_report(again)
    assert "3 policies were chosen under a harm limit" in (again.folder / "report.html").read_text()


def test_a_bank_that_is_not_asked_on_the_test_side_is_not_chosen(study):
    text = QUICK.partition("[sources.other]")[0] + '[fit]\nsignals = ["mean"]\n'
    study.write_text(text.replace('bank = "notes.txt"', 'bank = "notes.txt"\nsides = ["fit"]'))
    space, _ = through_lock(study, shelf_model())
    assert read_json(space.lock, "")["policy"]["first"] == "none"
    assert not read_json(space.lock, "")["policy"]["sources"]


def test_the_time_left_counts_sources_that_have_not_begun(study):
    study.write_text(STUDY.partition("[sources.retry]")[0])
    space = open_workspace(study, study.parent / "out")
    setting = prepare(space.study, None)
    ledger = asyncio.run(record(space, setting, shelf_model(), "fit", nobody))
    plain = [replace(row, seconds=10.0) for row in ledger.passes.values() if row.source == "none"]
    space.ledger.unlink()
    with Ledger(space.ledger) as slow:
        for row in plain:
            slow.append(row)
    found = status_of(space, setting)["sides"]
    passes = {"fit": 2 * ROWS, "test": 3 * ROWS}
    slots = setting.study.model.slots
    assert {side: found[side]["seconds_left"] * slots for side in found} == {
        side: 10 * count for side, count in passes.items()
    }


def test_several_seeds_are_recorded_source_by_source(study):
    study.write_text("seeds = [0, 1]\n" + STUDY.partition("[sources.other]")[0])
    space = open_workspace(study, study.parent / "out")
    setting = prepare(space.study, None)
    whole, asked = shelf_model(), []

    def breaks_off(prompt):
        asked.append(prompt)
        return ModelError("gone") if len(asked) > 3 * ROWS - 10 else whole.script(prompt)

    with pytest.raises(ModelError):
        asyncio.run(record(space, setting, ScriptedModel(script=breaks_off), "fit", nobody))
    fit = [item.id for item in setting.splits.fit]
    assert list(read_table(Ledger(space.ledger), "fit", fit, [0, 1]).columns) == ["none"]


def test_a_journal_that_was_changed_is_refused(locked):
    space, setting = locked
    asyncio.run(open_test_side(space, setting, shelf_model(), nobody))
    lines = space.journal.read_text().splitlines(keepends=True)
    space.journal.write_text("".join(lines[1:]))
    with pytest.raises(LockError, match="changed after the fact"):
        read_journal(space.journal)


def test_a_locked_study_is_not_locked_again_and_the_policy_is_the_one_that_serves(locked):
    space, setting = locked
    with pytest.raises(LockError, match="stays locked"):
        asyncio.run(lock_study(space, setting, shelf_model()))
    assert read_policy(read_json(space.lock, "")["policy"]) == read_policy(read_json(space.fit, "")["policy"])


def test_whatever_moves_is_named(locked):
    model = shelf_model()
    space, setting = locked
    lock, ledger = read_json(space.lock, ""), Ledger(space.ledger)
    assert moved(lock, setting, model.traits, None, ledger) == []
    for name in lock["digests"]:
        tampered = {**lock, "digests": {**lock["digests"], name: "0" * 64}}
        assert moved(tampered, setting, model.traits, None, ledger) == ["the lock itself", name]
    softer = {**lock, "policy": {**lock["policy"], "threshold": "always"}}
    assert moved(softer, setting, model.traits, None, ledger) == ["the lock itself", "policy"]


def change_bank(space):
    (space.folder / "notes.txt").write_text("Shelf 1 holds nothing.\n")


def change_question(space):
    file = space.folder / "test.jsonl"
    file.write_text(file.read_text().replace("shelf 1000?", "shelf 1001 again?"))


def change_prompt(space):
    space.study.write_text(
        space.study.read_text().replace('metric = "text"', 'metric = "text"\ninstructions = "Hm."')
    )


def change_placement(space):
    space.study.write_text(space.study.read_text().replace('"before"', '"system"'))


def change_seeds(space):
    space.study.write_text("seeds = [0, 1]\n" + space.study.read_text())


def change_ledger(space):
    lines = space.ledger.read_text().splitlines(keepends=True)
    space.ledger.write_text("".join(lines[:-1]))


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (change_bank, "bank:notes"),
        (change_question, "data:test"),
        (change_prompt, "prompts"),
        (change_placement, "source:other"),
        (change_seeds, "seeds"),
        (change_ledger, "fit passes"),
    ],
)
def test_the_test_side_stays_closed_when_something_moved(locked, change, names):
    model = shelf_model()
    space, _ = locked
    change(space)
    with pytest.raises(LockError, match=names):
        asyncio.run(open_test_side(space, prepare(space.study, None), model, nobody))
    assert [e["event"] for e in read_journal(space.journal)] == ["locked"]


@pytest.mark.parametrize(
    "change",
    [
        {"answer": "item8"},
        {"calls": 7},
        {"guards": {"format": "empty"}},
        {"recalls": ()},
        {"prompt_tokens": 999},
        {"seconds": 1e6},
    ],
)
def test_whatever_changes_in_a_fit_pass_breaks_the_lock(locked, change):
    space, setting = locked
    row = next(row for row in Ledger(space.ledger).of("fit", "notes") if row.recalls)
    with Ledger(space.ledger) as ledger:
        ledger.append(replace(row, **change))
    lock = read_json(space.lock, "")
    assert moved(lock, setting, shelf_model().traits, None, Ledger(space.ledger)) == ["fit passes"]


@pytest.mark.parametrize("lock", [{}, {"digests": {}}, {"model": 1, "policy": 2, "digests": 3}])
def test_a_lock_that_lost_its_parts_is_refused(locked, lock):
    space, setting = locked
    write_json(space.lock, lock)
    with pytest.raises(LockError, match="the lock itself moved"):
        asyncio.run(verify_lock(space, setting, shelf_model()))


def fitted_only(study):
    study.write_text(QUICK)
    space = open_workspace(study, study.parent / "out")
    setting = prepare(space.study, None)
    asyncio.run(record(space, setting, shelf_model(), "fit", nobody))
    fit_study(space, setting)
    return space


def edit_policy(space):
    fitted = read_json(space.fit, "")
    write_json(space.fit, {**fitted, "policy": {**fitted["policy"], "threshold": "always"}})


def change_study(old, new):
    return lambda space: space.study.write_text(space.study.read_text().replace(old, new))


@pytest.mark.parametrize(
    "change",
    [
        edit_policy,
        change_study("[fit]", "[fit]\nharm_limit = 0.02"),
        change_study("[fit]", "[split]\nfit = 50\n[fit]"),
        change_study('[sources.other]\nbank = "notes.txt"\nplacement = "before"\n', ""),
    ],
)
def test_a_policy_that_was_chosen_otherwise_is_not_locked(study, change):
    space = fitted_only(study)
    change(space)
    with pytest.raises(LockError, match="run heedful study fit again"):
        asyncio.run(lock_study(space, prepare(space.study, None), shelf_model()))
    assert not space.lock.exists()


def test_a_metric_of_ones_own_goes_with_the_study_and_its_change_breaks_the_lock(study):
    (study.parent / "mine.py").write_text("def same(answer, target):\n    return answer == target\n")
    study.write_text(QUICK.replace('metric = "text"', 'metric = "python:mine:same"'))
    space, setting = through_lock(study, shelf_model())
    assert any(row.right for row in Ledger(space.ledger).passes.values())
    (space.folder / "mine.py").write_text("def same(answer, target):\n    return True\n")
    with pytest.raises(LockError, match="grading"):
        asyncio.run(verify_lock(space, setting, shelf_model()))


@pytest.mark.parametrize("lines", [0, 1])
def test_a_journal_that_lost_its_end_is_not_reported_from(locked, lines):
    space, setting = locked
    asyncio.run(open_test_side(space, setting, shelf_model(), nobody))
    gather(space)
    kept = space.journal.read_text().splitlines(keepends=True)[:lines]
    space.journal.write_text("".join(kept))
    with pytest.raises(LockError, match="does not tell"):
        gather(space)


def test_a_lock_without_its_journal_is_not_verified(locked):
    space, setting = locked
    space.journal.unlink()
    with pytest.raises(LockError, match="does not tell when this lock was made"):
        asyncio.run(verify_lock(space, setting, shelf_model()))


def test_a_journal_that_was_cut_is_refused(locked):
    space, _ = locked
    space.journal.write_bytes(space.journal.read_bytes()[:-9])
    with pytest.raises(LockError, match="changed after the fact"):
        read_journal(space.journal)


def test_test_passes_that_changed_after_they_were_recorded_are_not_reported(locked):
    space, setting = locked
    asyncio.run(open_test_side(space, setting, shelf_model(), nobody))
    row = next(Ledger(space.ledger).of("test", "none"))
    with Ledger(space.ledger) as ledger:
        ledger.append(replace(row, right=not row.right))
    with pytest.raises(LockError, match=r"test passes .* moved"):
        gather(space)


def test_another_model_breaks_the_lock(locked):
    space, setting = locked
    other = shelf_model(traits=replace(SCRIPTED, fingerprint="other"))
    with pytest.raises(LockError, match="model"):
        asyncio.run(verify_lock(space, setting, other))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (STUDY.replace("metric", "metrik"), "metrik"),
        (STUDY.replace('kind = "vote"', 'kind = "luck"'), "luck|Invalid enum"),
        ("name = ", "not TOML"),
        (STUDY + '[sources.none]\nbank = "notes.txt"\n', "'none' is taken"),
        (STUDY.replace('bank = "notes.txt"\nplacement', "placement"), "needs a bank"),
        ('name = "x"\nbenchmark = "golf"\n[sources.retry]\nkind = "retry"\n', "no benchmark 'golf'"),
        (STUDY.replace("fit.jsonl", "gone.jsonl"), "gone.jsonl"),
        (STUDY.replace("[fit]", "[split]\nfit = 10000\n[fit]"), "too many"),
        (STUDY.replace('["mean", "min"]', '["ptrue"]'), "signals has 'ptrue'"),
        (STUDY.replace("[fit]", '[fit]\nfamilies = ["gates"]'), "families has 'gates'"),
        (STUDY.replace("[fit]", '[fit]\nfirsts = ["retry"]'), "firsts has 'retry'"),
        (STUDY.replace("[fit]", "[fit]\nfirsts = []"), "length >= 1.*firsts"),
        (
            STUDY.replace("[fit]", '[fit]\nfirsts = ["notes"]').replace(
                "[sources.notes]", '[sources.notes]\nsides = ["fit"]'
            ),
            "firsts has 'notes'",
        ),
        (STUDY.replace("[fit]", "[split]\ntest = 500\n[fit]"), f"{ROWS} rows on the test side; 500"),
        (STUDY.replace('kind = "vote"', 'kind = "vote"\ntemperature = 0'), "must be above 0"),
        (STUDY.replace('kind = "reflect"', 'kind = "reflect"\ntemperature = 1'), "decodes greedily"),
        (STUDY.replace("[sources.notes]", "[sources.notes]\ntemperature = 1"), "decodes greedily"),
        (STUDY.replace("[fit]", "[fit]\nharm_limit = 2"), "< 1.*harm_limit"),
        (STUDY.replace("[fit]", "[fit]\nconfidence = 95"), "< 1.*confidence"),
        (STUDY.replace("[fit]", "[model]\nslots = 0\n[fit]"), ">= 1.*slots"),
        (STUDY.replace("[fit]", "[split]\ntest = -3\n[fit]"), ">= 1.*test"),
        (STUDY.replace("[fit]", "[split]\npool = -3\n[fit]"), ">= 0.*pool"),
        (STUDY.replace('kind = "vote"', 'kind = "vote"\nsides = []'), "length >= 1.*sides"),
        (STUDY.replace('bank = "notes.txt"\nplacement', 'bank = "notes.txt"\nlimit = 0\nplacement'), "limit"),
        ("seeds = []\n" + STUDY, "length >= 1.*seeds"),
        ("seeds = [1, 1]\n" + STUDY, "a seed twice"),
        (STUDY.replace('test = "test.jsonl"\n', ""), "file, or fit and test"),
        (STUDY.replace("[sources.notes]", 'answer_pattern = "("\n[sources.notes]'), "no regular expression"),
        (STUDY.replace('"test.jsonl"', '"empty.jsonl"'), "no rows on the test side"),
    ],
)
def test_a_wrong_study_file_gets_one_clear_sentence(study, text, complaint):
    study.write_text(text)
    (study.parent / "empty.jsonl").write_text("")
    with pytest.raises((UsageError, MissingError), match=complaint) as caught:
        prepare(open_workspace(study, study.parent / "out").study, None)
    assert "\n" not in str(caught.value)


def test_a_test_question_inside_a_bank_is_refused(study):
    (study.parent / "notes.txt").write_text("what is on shelf 1007?\n")
    with pytest.raises(LeakError, match="holds questions that are asked") as caught:
        prepare(open_workspace(study, study.parent / "out").study, None)
    assert caught.value.exit_code == 4


def test_a_test_question_with_its_choices_under_it_is_found_in_a_bank():
    test = Item(id="t", question="Which bird swims?", answer="A")
    bank = [
        new_entry(f"{question}\nA. penguin\nB. lark", kind="exemplar", response="Answer: A", id=question)
        for question in ("Which bird swims?", "Which bird sings?")
    ]
    kept = Splits(fit=(), test=(test,), pool=()).unasked(bank)
    assert [entry.id for entry in kept] == ["Which bird sings?"]


@pytest.mark.parametrize("place", ["fit", "test", "test_side"])
def test_a_question_is_found_within_an_entry_of_a_bank(place):
    question = Item(id="q", question="Which of these birds swims best under water?", answer="A")
    asked = Splits(**{"fit": (), "test": (), "pool": (), place: (question,)})
    bank = [
        new_entry(f"Q: {question.question} A: the penguin.", kind="fact", id="within"),
        new_entry("A hard one", kind="exemplar", response=question.question.upper(), id="as the response"),
        new_entry("Which of these birds swims best in air?", kind="fact", id="another"),
    ]
    assert [entry.id for entry in asked.unasked(bank)] == ["another"]


def test_a_short_question_within_a_longer_entry_is_not_taken_for_it():
    short = Item(id="q", question="Who swims?", answer="A")
    bank = [new_entry("Ask yourself: who swims? Most birds do not.", kind="rule", id="rule")]
    assert Splits(fit=(short,), test=(), pool=()).unasked(bank) == bank


def test_an_endpoint_without_logprobs_is_refused_before_anything_is_recorded(study):
    space = open_workspace(study, study.parent / "out")
    silent = shelf_model(traits=replace(SCRIPTED, logprobs=False))
    with pytest.raises(LogprobError, match="nothing was recorded"):
        asyncio.run(record(space, prepare(space.study, None), silent, "fit", nobody))
    assert not space.ledger.exists()


def test_benchmark_data_that_are_not_there_are_named(tmp_path, monkeypatch):
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    (tmp_path / "s.toml").write_text('name = "s"\nbenchmark = "svamp"\n[sources.retry]\nkind = "retry"\n')
    with pytest.raises(MissingError, match="set HEEDFUL_DATA or give --data"):
        prepare(tmp_path / "s.toml", None)
    (tmp_path / "svamp").mkdir()
    (tmp_path / "svamp" / "train.jsonl").write_text("{}")
    with pytest.raises(UsageError, match=r"sha256 .* expected 5478cc5f"):
        prepare(tmp_path / "s.toml", tmp_path)


def test_a_folder_with_another_locked_study_is_left_alone(locked, study):
    space, _ = locked
    with pytest.raises(UsageError, match="another locked study"):
        open_workspace(study, space.folder)


def test_a_locked_folder_takes_no_other_bank(once_locked, tmp_path):
    shutil.copytree(once_locked, tmp_path / "copy")
    file, folder = tmp_path / "copy" / "desk.toml", tmp_path / "copy" / "out"
    assert open_workspace(file, folder).folder == folder
    notes = tmp_path / "copy" / "notes.txt"
    notes.write_text(notes.read_text() + "\nOne more.")
    with pytest.raises(UsageError, match=r"notes\.txt is not what was locked"):
        open_workspace(file, folder)
    assert "One more." not in (folder / "notes.txt").read_text()


def test_a_study_may_be_kept_where_its_file_is(study):
    space = open_workspace(study, study.parent)
    assert space.study.read_text() == study.read_text()
    assert prepare(space.study, None).study.name == "desk"


@pytest.mark.parametrize("bank", ["/elsewhere/notes.txt", "../notes.txt"])
def test_a_bank_outside_the_studys_folder_is_refused(study, tmp_path, bank):
    study.write_text(study.read_text().replace('bank = "notes.txt"', f'bank = "{bank}"'))
    with pytest.raises(UsageError, match="is not in the study file's folder"):
        open_workspace(study, tmp_path / "out")


def test_a_policy_survives_json():
    policy = Policy(threshold=float("inf"), sources=("a",), margins={"a": 0.1})
    assert read_policy(json.loads(json.dumps(policy_fields(policy)))) == policy
