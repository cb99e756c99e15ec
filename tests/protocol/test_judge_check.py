"""A study graded by a model, and how often that model errs."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from heedful import ScriptedModel, UsageError
from heedful.benchmarks.judge import Judge
from heedful.benchmarks.questions import OwnQuestions
from heedful.protocol.judge_check import check_judge
from heedful.protocol.lock import digests
from heedful.protocol.setup import StudySetup, prepare
from heedful.protocol.workflow import record
from heedful.protocol.workspace import open_workspace
from heedful.types import Policy, Prompt
from tests.protocol.shelves import QUICK, ROWS, nobody, shelf_model, written

JUDGED = QUICK.replace(
    'metric = "text"', 'metric = "judge"\n[questions.judge]\nurl = "http://127.0.0.1:9/v1"'
)


def lenient(prompt: Prompt) -> str:
    """Says yes to item9 too."""
    said = prompt.messages[-1].content
    target = said.partition("Right answer: ")[2].partition("\n")[0]
    return "yes" if f"Given answer: {target}\n" in said or "Given answer: item9\n" in said else "no"


def judged_by(setup: StudySetup, model: ScriptedModel) -> StudySetup:
    own = setup.benchmark
    assert isinstance(own, OwnQuestions)
    grader = Judge(model=model, cache=setup.folder / "judge.jsonl")
    return replace(setup, benchmark=replace(own, grader=grader))


@pytest.fixture
def judged(tmp_path: Path) -> StudySetup:
    space = open_workspace(written(tmp_path, JUDGED), tmp_path / "out")
    return prepare(space.study, None)


def test_a_study_is_graded_by_its_judge_and_each_answer_once(judged: StudySetup, tmp_path: Path) -> None:
    model = ScriptedModel(script=lenient)
    setup = judged_by(judged, model)
    space = open_workspace(tmp_path / "out", None)
    ledger = asyncio.run(record(space, setup, shelf_model(), "fit", nobody))
    answered = [row for row in ledger.passes.values() if row.record.answer]
    assert len(answered) >= 6 * ROWS
    assert all(row.right for row in answered), "the judge accepts whatever this model says"
    assert 0 < len(model.prompts) <= 2 * ROWS
    before = len(model.prompts)
    asyncio.run(record(space, judged_by(judged, model), shelf_model(), "fit", nobody))
    assert len(model.prompts) == before


def test_another_judge_is_another_grading(judged: StudySetup, tmp_path: Path) -> None:
    from heedful.protocol.ledger import Ledger

    model, ledger = ScriptedModel(script=lenient), Ledger(tmp_path / "none.jsonl")
    traits = shelf_model().traits
    one = digests(judged_by(judged, model), traits, ledger, Policy())
    other = replace(model, traits=replace(model.traits, fingerprint="another"))
    two = digests(judged_by(judged, other), traits, ledger, Policy())
    assert {name for name in one if one[name] != two[name]} == {"grading"}


def test_the_error_rate_of_a_judge_is_measured_on_answers_that_a_person_graded(
    judged: StudySetup, tmp_path: Path
) -> None:
    rows = [
        {"id": "s1", "answer": "item1", "right": True},
        {"id": "s2", "answer": "item2, I think", "right": True},
        {"id": "s3", "answer": "item9", "right": False},
        {"id": "s4", "answer": "item5", "right": False},
    ]
    sample = tmp_path / "sample.jsonl"
    sample.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = asyncio.run(check_judge(judged_by(judged, ScriptedModel(script=lenient)), sample))
    assert (found.n, found.agreement.value, found.unclear) == (4, 0.5, 0)
    assert found.false_right is not None
    assert found.false_wrong is not None
    assert (found.false_right.value, found.false_wrong.value) == (0.5, 0.5)
    assert found.false_right.low < 0.5 < found.false_right.high
    assert [error.id for error in found.errors] == ["s2", "s3"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"id": "zz", "answer": "x", "right": true}', "'zz', which is not a question"),
        ("", "has no graded answers"),
        ('{"id": "s1"}', "line 1 is not a graded answer"),
    ],
)
def test_a_sample_that_cannot_be_used_is_refused(
    judged: StudySetup, tmp_path: Path, line: str, says: str
) -> None:
    (tmp_path / "sample.jsonl").write_text(line)
    with pytest.raises(UsageError, match=says):
        asyncio.run(check_judge(judged_by(judged, ScriptedModel(script=lenient)), tmp_path / "sample.jsonl"))


def test_a_judge_needs_its_metric_and_the_metric_its_judge(tmp_path: Path) -> None:
    for text in (QUICK.replace('"text"', '"judge"'), JUDGED.replace('"judge"', '"text"')):
        with pytest.raises(UsageError, match=r"needs the table \[questions.judge\]"):
            prepare(written(tmp_path, text), None)
