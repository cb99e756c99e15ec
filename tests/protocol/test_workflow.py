"""A whole study with the scripted model, and what stops one."""

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from heedful import (
    Controller,
    LockError,
    LogprobError,
    ModelError,
    RequestError,
    ScriptedModel,
    UsageError,
)
from heedful.evaluation.study_data import read_study_data
from heedful.memory.likeness import similarity_if_present
from heedful.models.scripted import SCRIPTED, Reply
from heedful.protocol.events import CROSSFITTED, log_event, read_events
from heedful.protocol.fit_result import read_fit
from heedful.protocol.ledger import Ledger
from heedful.protocol.lock import read_lock
from heedful.protocol.replay import Replayer
from heedful.protocol.setup import prepare
from heedful.protocol.status import status_of
from heedful.protocol.table import read_table
from heedful.protocol.workflow import fit_study, lock_study, open_test_side, record, side_table, verify_lock
from heedful.protocol.workspace import Workspace, open_workspace, read_json, write_json
from heedful.report.write import write_report
from heedful.types import Prompt
from tests.making import PreparedStudy, reply_of
from tests.protocol.shelves import QUICK, ROWS, STUDY, nobody, shelf_model, through_lock, written


def test_a_study_runs_from_its_file_to_an_opened_test_side(study: Path) -> None:
    model = shelf_model()
    space, setup = through_lock(study, model)
    fitted = read_fit(space.fit)
    assert fitted.policy.sources or fitted.kind.family == "always"
    assert fitted.objective > 0.7
    assert abs(fitted.optimism) < 0.1
    assert not any(row.side == "test" for row in Ledger(space.ledger).passes.values())
    asyncio.run(open_test_side(space, setup, model, nobody))
    ledger = Ledger(space.ledger)
    assert len(ledger.passes) == 2 * ROWS * 7
    asked = 1 + 1  # one question more before each side, to see whether the log-probs make sense
    assert sum(row.record.calls for row in ledger.passes.values()) == len(model.prompts) - asked
    found = status_of(space, setup)
    assert (found.locked, found.test_openings, found.seconds_left) == (True, 1, 0)


def test_a_finished_study_is_not_opened_again_and_costs_no_call(locked: PreparedStudy) -> None:
    model = shelf_model()
    space, setup = locked
    lock = asyncio.run(open_test_side(space, setup, model, nobody))
    asked, events = len(model.prompts), space.events.read_bytes()
    assert asyncio.run(open_test_side(space, setup, model, nobody)) == lock
    assert (len(model.prompts), space.events.read_bytes()) == (asked, events)
    log_event(space.events, CROSSFITTED, lock.lock, lock.locked_at)
    asyncio.run(open_test_side(space, setup, model, nobody))
    assert len(model.prompts) == asked, "also after it was cross-fitted"


def test_a_finished_test_side_that_lost_a_pass_is_opened_a_second_time(locked: PreparedStudy) -> None:
    space, setup = locked
    asyncio.run(open_test_side(space, setup, shelf_model(), nobody))
    lines = space.ledger.read_bytes().splitlines(keepends=True)
    space.ledger.write_bytes(b"".join(lines[:-1]))
    asyncio.run(open_test_side(space, setup, shelf_model(), nobody))
    assert [e.event for e in read_events(space.events)].count("opened the test side") == 2


@pytest.mark.slow
def test_a_refused_question_is_a_failed_pass_that_is_shown_and_can_be_asked_again(study: Path) -> None:
    study.write_text(QUICK)
    whole = shelf_model()
    refused = ("shelf 0?", "shelf 7?", "shelf 1003?")  # the first question of all is among them

    def picky(prompt: Prompt) -> Reply:
        asked = " ".join(message.content for message in prompt.messages)
        return RequestError("content filter") if any(r in asked for r in refused) else reply_of(whole, prompt)

    model = ScriptedModel(script=picky)
    space, setup = through_lock(study, model)
    counts = status_of(space, setup).sides["fit"].sources
    names = ("none", "notes", "other", "retry", "reflect", "vote", "verify")
    assert {name: (count.recorded, count.failed) for name, count in counts.items()} == dict.fromkeys(
        names, (ROWS, 2)
    )
    asyncio.run(open_test_side(space, setup, model, nobody))
    report = write_report(space)
    assert report.summary["failed_passes"]["test"] == dict.fromkeys(names, 1)
    assert "On the test side, 7 passes failed (none 1, notes 1" in report.text
    assert report.summary["arms"]["baseline"]["n"] == ROWS
    assert "s0: RequestError: content filter" in counts["none"].error
    with pytest.raises(LockError, match="is locked, so its fit side cannot change"):
        asyncio.run(record(space, setup, whole, "fit", nobody, retry_failed=True))
    asyncio.run(record(space, setup, whole, "fit", nobody))
    before = len(whole.prompts)
    asyncio.run(open_test_side(space, setup, whole, nobody, retry_failed=True))
    passes = Ledger(space.ledger).passes
    healed = [row for (side, _, _, task), row in passes.items() if (side, task) == ("test", "s1003")]
    probing = 1  # one question more, to see whether the log-probs make sense
    assert len(whole.prompts) - before == probing + sum(row.record.calls for row in healed)
    assert write_report(space).summary["failed_passes"]["test"] == {}
    assert write_report(space).summary["test_openings"] == 1


def test_going_on_after_an_interruption_is_not_another_opening(locked: PreparedStudy) -> None:
    space, setup = locked
    whole, asked = shelf_model(), []

    def breaks_off(prompt: Prompt) -> Reply:
        asked.append(prompt)
        return ModelError("gone") if len(asked) > 3 * ROWS - 10 else reply_of(whole, prompt)

    with pytest.raises(ModelError):
        asyncio.run(open_test_side(space, setup, ScriptedModel(script=breaks_off), nobody))
    whole_arms = read_table(Ledger(space.ledger), "test", [item.id for item in setup.splits.test], [0])
    assert list(whole_arms.columns) == ["none", "notes"], "one source after the other"
    asyncio.run(open_test_side(space, setup, whole, nobody))
    events = [event.event for event in read_events(space.events)]
    assert events == [
        "locked",
        "opened the test side",
        "went on recording the test side",
        "recorded the whole test side",
    ]
    assert status_of(space, setup).test_openings == 1


def test_an_endpoint_that_fails_at_once_does_not_open_the_test_side(locked: PreparedStudy) -> None:
    space, setup = locked
    asleep = ScriptedModel(script=lambda prompt: ModelError("asleep"))
    with pytest.raises(ModelError):
        asyncio.run(open_test_side(space, setup, asleep, nobody))
    assert [event.event for event in read_events(space.events)] == ["locked"]


def test_another_metric_grades_again_without_a_call_and_another_pattern_decodes_again(study: Path) -> None:
    text = STUDY.partition("[sources.other]")[0]
    study.write_text(text.replace('metric = "text"', 'metric = "exact"\nanswer_pattern = "(item)"'))
    model = shelf_model()

    def recorded() -> tuple[int, int]:
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
    study.write_text(text.replace('metric = "text"', 'metric = "contains"'))
    assert recorded()[1] == 0


@pytest.mark.parametrize("change", ["entry", "placement", "model", "targets", "pattern", "scores"])
def test_passes_of_another_bank_prompt_or_model_are_not_locked(study: Path, change: str) -> None:
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
    setup = prepare(space.study, None)
    fit_study(space, setup)
    with pytest.raises(LockError, match="a different bank, prompt, model or grading"):
        asyncio.run(lock_study(space, setup, model))


def test_test_passes_that_were_there_before_the_lock_are_told(locked: PreparedStudy, tmp_path: Path) -> None:
    space, setup = locked
    model = shelf_model()
    asyncio.run(open_test_side(space, setup, model, nobody))
    again = open_workspace(space.folder.parent / "desk.toml", tmp_path / "again")
    shutil.copyfile(space.ledger, again.ledger)
    setup = prepare(again.study, None)
    fit_study(again, setup)
    asyncio.run(lock_study(again, setup, model))
    asyncio.run(open_test_side(again, setup, model, nobody))
    seen = sum(row.side == "test" for row in Ledger(space.ledger).passes.values())
    assert seen > 0
    assert read_lock(space.lock).test_passes == 0
    assert read_lock(again.lock).test_passes == seen
    assert "had been recorded before the policy was locked" not in write_report(space).text
    assert write_report(again).text.startswith(f"{seen:,} passes of the test side had been recorded before")


def test_every_choice_under_a_harm_limit_is_counted(study: Path) -> None:
    study.write_text(QUICK + "harm_limit = 0.2\n")
    space, _ = through_lock(study, shelf_model())
    assert read_lock(space.lock).choices == 1
    again = open_workspace(study, study.parent / "again")
    shutil.copyfile(space.ledger, again.ledger)
    for seed in (0, 1, 1, 2):
        text = space.study.read_text()
        again.study.write_text(f"{text}seed = {seed}\n" if seed else text)
        setup = prepare(again.study, None)
        fit_study(again, setup)
    model = shelf_model()
    asyncio.run(lock_study(again, setup, model))
    assert read_lock(again.lock).choices == 3, "the same choice made twice is one"
    asyncio.run(open_test_side(again, setup, model, nobody))
    write_report(again)
    assert "3 policies were chosen under a harm limit" in (again.folder / "report.html").read_text()


def test_a_bank_that_is_not_asked_on_the_test_side_is_not_chosen(study: Path) -> None:
    text = QUICK.partition("[sources.other]")[0] + '[fit]\nsignals = ["mean"]\n'
    study.write_text(text.replace('bank = "notes.txt"', 'bank = "notes.txt"\nsides = ["fit"]'))
    space, _ = through_lock(study, shelf_model())
    policy = read_lock(space.lock).policy
    assert (policy.first, policy.sources) == ("none", ())


def test_several_seeds_are_recorded_source_by_source(study: Path) -> None:
    study.write_text("seeds = [0, 1]\n" + STUDY.partition("[sources.other]")[0])
    space = open_workspace(study, study.parent / "out")
    setup = prepare(space.study, None)
    whole, asked = shelf_model(), []

    def breaks_off(prompt: Prompt) -> Reply:
        asked.append(prompt)
        return ModelError("gone") if len(asked) > 3 * ROWS - 10 else reply_of(whole, prompt)

    with pytest.raises(ModelError):
        asyncio.run(record(space, setup, ScriptedModel(script=breaks_off), "fit", nobody))
    fit = [item.id for item in setup.splits.fit]
    assert list(read_table(Ledger(space.ledger), "fit", fit, [0, 1]).columns) == ["none"]


def test_a_locked_study_is_not_locked_again_and_the_policy_is_the_one_that_serves(
    locked: PreparedStudy,
) -> None:
    space, setup = locked
    with pytest.raises(LockError, match="stays locked"):
        asyncio.run(lock_study(space, setup, shelf_model()))
    assert read_lock(space.lock).policy == read_fit(space.fit).policy


def change_bank(space: Workspace) -> None:
    (space.folder / "notes.txt").write_text("Shelf 1 holds nothing.\n")


def change_question(space: Workspace) -> None:
    file = space.folder / "test.jsonl"
    file.write_text(file.read_text().replace("shelf 1000?", "shelf 1001 again?"))


def change_prompt(space: Workspace) -> None:
    space.study.write_text(
        space.study.read_text().replace('metric = "text"', 'metric = "text"\ninstructions = "Hm."')
    )


def change_placement(space: Workspace) -> None:
    space.study.write_text(space.study.read_text().replace('"before"', '"system"'))


def change_seeds(space: Workspace) -> None:
    space.study.write_text("seeds = [0, 1]\n" + space.study.read_text())


def change_ledger(space: Workspace) -> None:
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
def test_the_test_side_stays_closed_when_something_moved(
    locked: PreparedStudy, change: Callable[[Workspace], object], names: str
) -> None:
    model = shelf_model()
    space, _ = locked
    change(space)
    with pytest.raises(LockError, match=names):
        asyncio.run(open_test_side(space, prepare(space.study, None), model, nobody))
    assert [e.event for e in read_events(space.events)] == ["locked"]


def fitted_only(study: Path) -> Workspace:
    study.write_text(QUICK)
    space = open_workspace(study, study.parent / "out")
    setup = prepare(space.study, None)
    asyncio.run(record(space, setup, shelf_model(), "fit", nobody))
    fit_study(space, setup)
    return space


def edit_policy(space: Workspace) -> None:
    fitted = read_json(space.fit, "")
    write_json(space.fit, {**fitted, "policy": {**fitted["policy"], "threshold": "always"}})


def change_study(old: str, new: str) -> Callable[[Workspace], object]:
    return lambda space: space.study.write_text(space.study.read_text().replace(old, new))


@pytest.mark.parametrize(
    "change",
    [
        edit_policy,
        change_study("[fit]", "[fit]\nharm_limit = 0.02"),
        change_study("[fit]", "[split]\nfit = 50\n[fit]"),
        change_study('[sources.other]\nbank = "notes.txt"\nplacement = "before"\nrecall = "bm25"\n', ""),
    ],
)
def test_a_policy_that_was_chosen_otherwise_is_not_locked(
    study: Path, change: Callable[[Workspace], object]
) -> None:
    space = fitted_only(study)
    change(space)
    with pytest.raises(LockError, match="run heedful study fit again"):
        asyncio.run(lock_study(space, prepare(space.study, None), shelf_model()))
    assert not space.lock.exists()


@pytest.mark.parametrize("lines", [0, 1])
def test_an_event_log_that_lost_its_end_is_not_reported_from(locked: PreparedStudy, lines: int) -> None:
    space, setup = locked
    asyncio.run(open_test_side(space, setup, shelf_model(), nobody))
    read_study_data(space)
    kept = space.events.read_text().splitlines(keepends=True)[:lines]
    space.events.write_text("".join(kept))
    with pytest.raises(LockError, match="does not record"):
        read_study_data(space)


def test_test_passes_that_changed_after_they_were_recorded_are_neither_reported_nor_verified(
    locked: PreparedStudy,
) -> None:
    space, setup = locked
    asyncio.run(open_test_side(space, setup, shelf_model(), nobody))
    row = next(Ledger(space.ledger).of("test", "none"))
    with Ledger(space.ledger) as ledger:
        ledger.append(replace(row, right=not row.right))
    with pytest.raises(LockError, match=r"test passes .* changed"):
        read_study_data(space)
    with pytest.raises(LockError, match=r"test passes .* changed"):
        asyncio.run(verify_lock(space, setup, shelf_model()))


def test_an_endpoint_without_logprobs_is_refused_before_anything_is_recorded(study: Path) -> None:
    space = open_workspace(study, study.parent / "out")
    silent = shelf_model(traits=replace(SCRIPTED, logprobs=False))
    with pytest.raises(LogprobError, match="nothing was recorded"):
        asyncio.run(record(space, prepare(space.study, None), silent, "fit", nobody))
    assert not space.ledger.exists()


@pytest.mark.slow
def test_a_value_policy_is_fitted_locked_tested_and_reported(study: Path) -> None:
    study.write_text(QUICK.replace('families = ["gate", "choose"]', 'families = ["value"]\nprior = "none"'))
    model = shelf_model()
    space, setup = through_lock(study, model)
    lock = read_lock(space.lock)
    assert lock.policy.value is not None
    assert lock.fit.kind.family == "value"
    asyncio.run(open_test_side(space, setup, model, nobody))
    report = write_report(space)
    mine, base = (report.summary["arms"][name] for name in ("heedful", "baseline"))
    assert mine["accuracy"] > base["accuracy"] + 0.2
    assert "while the expected gain in accuracy exceeds 1.0% per call" in report.summary["policy_in_words"]
    assert "value" not in report.summary["policy"], "the trees are in the lock, not in the report"
    sources = setup.sources("test", 0)
    live = Controller(
        model=model,
        policy=lock.policy,
        sources=sources,
        patience=None,
        similarity=similarity_if_present(),
    )
    replayed = Replayer(side_table(space, setup, "test")).replay(lock.policy)
    for at, item in enumerate(setup.splits.test[:20]):
        outcome = live.answer_sync(setup.benchmark.task(item))
        assert outcome.calls == replayed.calls[at]
        assert setup.benchmark.grade(outcome.answer, item) == replayed.right[at]


def test_a_promise_and_a_harm_limit_exclude_each_other(study: Path) -> None:
    study.write_text(QUICK + 'harm_limit = 0.02\npromise = "no-loss"\n')
    with pytest.raises(UsageError, match="leave out the other"):
        open_workspace(study, study.parent / "out")


def test_a_study_copies_the_passes_of_a_study_that_it_reuses_and_says_so(
    locked: PreparedStudy, tmp_path: Path
) -> None:
    space, setup = locked
    model = shelf_model()
    asyncio.run(open_test_side(space, setup, model, nobody))
    known = len(Ledger(space.ledger).passes)
    sample = '[sources.sample]\nkind = "retry"\ntemperature = 0.7\nsample = 1\n[fit]'
    again = written(tmp_path, f'reuse = "{space.folder}"\n' + QUICK.replace("[fit]", sample))
    fresh = shelf_model()
    new, reusing = through_lock(again, fresh)
    asked = 1  # to see whether the log-probs make sense
    assert len(fresh.prompts) == ROWS + asked, "only the new source is decoded"
    assert read_lock(new.lock).test_passes == known // 2, "its test rows were known before the lock"
    asyncio.run(open_test_side(new, reusing, fresh, nobody))
    assert len(fresh.prompts) == 2 * (ROWS + asked)


def test_a_study_to_reuse_must_have_a_ledger(study: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    shutil.copy(study, tmp_path / "empty" / "study.toml")
    study.write_text('reuse = "../empty"\n' + QUICK)
    with pytest.raises(UsageError, match="the study to reuse has no ledger"):
        through_lock(study, shelf_model())


@pytest.mark.parametrize(
    ("prior", "untuned", "certified"), [("none", "agreement", "threshold"), ("number", "prior", "prior")]
)
def test_a_value_policy_is_certified_locked_and_reported_beside_the_threshold_policy(
    study: Path, prior: str, untuned: str, certified: str
) -> None:
    families = f'families = ["agree", "value"]\nprior = "{prior}"\nharm_limit = 0.2'
    study.write_text(QUICK.replace('families = ["gate", "choose"]', families))
    space, setup = through_lock(study, shelf_model())
    lock = read_lock(space.lock)
    assert set(lock.fit.families) == {certified, "value"}
    assert {one.ladder for one in lock.fit.certificates} == {untuned, "value"}
    asyncio.run(open_test_side(space, setup, shelf_model(), nobody))
    found = write_report(space).summary["families"]
    assert set(found) == {"threshold", "value", certified, f"{certified}-certified", "value-certified"}
    assert found["value-certified"]["certified_limit"] == 0.2
    assert found["value-certified"]["helps"] > 0
    assert found["value"]["certified_limit"] is None
