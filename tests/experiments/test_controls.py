"""Negative controls on a study whose model obeys its notes."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from heedful import ScriptedModel, UsageError, new_entry
from heedful.experiments.controls import controls
from heedful.experiments.sensitivity import sensitivity
from heedful.experiments.variant import Experiment, with_bank
from heedful.models.scripted import Reply
from heedful.protocol.setup import prepare
from heedful.protocol.workflow import fit_study, lock_study, open_test_side, record
from heedful.protocol.workspace import open_workspace
from heedful.report.pages.controls_page import controls_page
from heedful.report.pages.sensitivity_page import sensitivity_page
from heedful.types import Prompt
from tests.making import RecordedStudy

STUDY = """
name = "sums"
[questions]
fit = "fit.jsonl"
test = "test.jsonl"
metric = "number"
[sources.rules]
bank = "rules.txt"
recall = "bm25"
limit = 3
[fit]
signals = ["mean"]
families = ["gate", "choose"]
calibrated = false
folds = 3
firsts = ["none"]
"""


def reply(prompt: Prompt) -> Reply:
    """Adds by itself when the numbers are small, and does what a rule says; unsure of orders."""
    said = prompt.messages[-1].content
    a, b = map(int, re.findall(r"(\d+) and (\d+)", said)[0])
    if "minus" in said.partition("Notes")[2] or "DONE" in said or "French" in said or "Answer: 0" in said:
        return ("0", -0.9)
    if "plus" in said.partition("Notes")[2]:
        return (str(a + b), -0.1)
    return (str(a + b) if a < 40 else "1", -0.3 if a < 40 else -0.8)


@pytest.fixture
def study(tmp_path: Path) -> RecordedStudy:
    return make_study(tmp_path, STUDY)


def make_study(tmp_path: Path, text: str) -> RecordedStudy:
    for side, start in (("fit", 1), ("test", 2)):
        rows = [
            {"id": f"{side}{n}", "question": f"What do {n} and {start} make?", "answer": str(n + start)}
            for n in range(start, 80, 2)
        ]
        (tmp_path / f"{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "rules.txt").write_text("What two numbers make is the first plus the second.\n")
    (tmp_path / "s.toml").write_text(text)
    space = open_workspace(tmp_path / "s.toml", tmp_path / "out")
    setup = prepare(space.study, None)
    model = ScriptedModel(script=reply)
    asyncio.run(record(space, setup, model, "fit", lambda progress: None))
    fit_study(space, setup)
    asyncio.run(lock_study(space, setup, model))
    asyncio.run(open_test_side(space, setup, model, lambda progress: None))
    return space, setup, model


def experiment(study: RecordedStudy, name: str, **options: Any) -> Experiment:
    space, setup, model = study
    return Experiment(
        name=name,
        space=space,
        setup=setup,
        model=model,
        source="rules",
        tell=lambda *told: None,
        side="test",
        **options,
    )


def test_bad_entries_spoil_always_retrieve_and_not_the_locked_policy(study: RecordedStudy) -> None:
    space, _, _ = study
    lock, ledger = space.lock.read_bytes(), space.ledger.read_bytes()
    asked = experiment(study, "controls")
    clean, bad = asyncio.run(controls(asked, [0.8], ["contradictory", "poisoned"]))
    assert clean.arms["always"].counts.hurts == clean.arms["heedful"].counts.hurts == 0
    assert clean.exposed == 0 < bad.exposed
    assert bad.arms["always"].counts.hurts > 0
    assert bad.arms["heedful"].counts.hurts == 0
    assert bad.arms["always"].change.value < 0 == clean.arms["always"].change.value
    assert bad.changed > 0 == clean.changed
    assert (bad.bad, bad.entries) == (4, 5)
    assert (space.lock.read_bytes(), space.ledger.read_bytes()) == (lock, ledger)
    assert bad.removal["betting"].bad_gone <= bad.removal["betting"].bad
    page = controls_page("sums", "rules", "test", [clean, bad])
    assert "Every arm was chosen on the clean fit side" in page.text
    assert page.summary["rates"][1]["arms"]["heedful"]["hurts"] == 0


def test_smaller_and_noisier_banks_are_measured_on_the_same_rows(study: RecordedStudy) -> None:
    _, _, model = study
    before = len(model.prompts)
    asked = experiment(study, "sensitivity", rows=20, seed=3)
    found = asyncio.run(sensitivity(asked, [1.0], [0.5, 0.8]))
    assert [(one.axis, one.value, one.entries) for one in found] == [
        ("size", 1.0, 1),
        ("noise", 0.5, 2),
        ("noise", 0.8, 5),
    ]
    assert found[0].changed == 0, "the bank as it is has been recorded"
    assert len(model.prompts) - before == sum(one.changed for one in found)
    assert all(arm.counts.n == 20 for one in found for arm in one.arms.values())
    page = sensitivity_page("sums", "rules", "test", found)
    assert len(page.figures) == 6
    assert [point["axis"] for point in page.summary["points"]] == ["size", "noise", "noise"]


def test_sensitivity_follows_the_value_policy_that_a_harm_limit_did_not_certify(tmp_path: Path) -> None:
    text = STUDY.replace('"choose"]', '"choose", "value"]') + "harm_limit = 0.02\n"
    space, setup, model = make_study(tmp_path, text)
    (point,) = asyncio.run(sensitivity(experiment((space, setup, model), "sensitivity"), [1.0], []))
    assert list(point.arms) == ["always", "heedful", "value"]
    assert point.arms["heedful"].counts.helps == 0, "nothing can be certified on 40 rows"
    assert point.arms["value"].counts.helps > 0
    page = sensitivity_page("sums", "rules", "test", [point])
    assert page.summary["points"][0]["arms"]["value"]["helps"] == point.arms["value"].counts.helps


def test_a_bank_that_was_built_otherwise_stands_by_what_it_cost(study: RecordedStudy, tmp_path: Path) -> None:
    file = tmp_path / "small.jsonl"
    file.write_text(json.dumps({"text": "Take the first minus the second.", "kind": "rule"}) + "\n")
    asked = experiment(study, "sensitivity")
    with pytest.raises(UsageError, match="must be made by heedful bank build"):
        asyncio.run(sensitivity(asked, [], [], [file]))
    (tmp_path / "small.cost.json").write_text('{"rollouts": 40, "written": 7}')
    (point,) = asyncio.run(sensitivity(asked, [], [], [file]))
    assert (point.axis, point.value, point.entries) == ("construction", 47, 1)
    assert point.arms["always"].change.value < 0
    assert len(sensitivity_page("sums", "rules", "test", [point]).figures) == 3


def test_passes_of_another_bank_are_not_compared(study: RecordedStudy) -> None:
    space, setup, model = study
    other = with_bank(setup, "rules", [new_entry("What two numbers make is their sum.", kind="rule")])
    asked = experiment((space, other, model), "controls")
    with pytest.raises(UsageError, match="recorded with another bank, prompt or model"):
        asyncio.run(controls(asked, [0.5], ["stale"]))
