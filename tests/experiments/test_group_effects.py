"""A group that hides behind the entries it is recalled with shows when it is left out."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from heedful.experiments.group_effects import GroupEffects, leave_groups_out
from heedful.experiments.study_evidence import evidence_table, study_evidence
from heedful.experiments.variant import Experiment
from heedful.governance.groups import GroupStanding, group_standings
from heedful.governance.retire import review
from heedful.governance.terms import RetirementTerms
from heedful.models.scripted import Reply
from heedful.protocol.harm import certifying_tasks
from heedful.protocol.ledger import Ledger
from heedful.protocol.table import read_table
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
Note = tuple[str, str, str]
TRAPS: Sequence[Note] = (
    ("trap1", "The green desk opens at nine.", "author:eve"),
    ("trap2", "The blue desk opens at nine.", "author:eve"),
)
CALM: Sequence[Note] = (
    ("calm1", "A green desk opens in the morning.", "author:ann"),
    ("calm2", "A blue desk opens in the morning.", "author:ann"),
)


def reply(prompt: Prompt) -> Reply:
    """Believes `nine` in its notes, and is wrong about every second desk without any."""
    content = prompt.messages[-1].content
    question, _, notes = content.partition("Notes that may help")
    if "nine" in notes:
        return ("nine", -0.5)
    return ("seven" if notes or int(question.split("number ")[1][0]) % 2 else "eight", -0.5)


def recorded(folder: Path, settings: str = "", calm: Sequence[Note] = CALM) -> RecordedStudy:
    rows = [
        {"id": f"{colour}{n}", "question": f"When does {colour} desk number {n} open?", "answer": "seven"}
        for colour in ("green", "blue")
        for n in range(8)
    ]
    last = [{"id": "t", "question": "When does red desk number 1 open?", "answer": "seven"}]
    notes = [{"id": id, "text": text, "kind": "fact", "tags": [tag]} for id, text, tag in (*TRAPS, *calm)]
    return record_study(folder, STUDY + settings, {"q": rows, "t": last, "notes": notes}, reply)


@pytest.fixture
def study(tmp_path: Path) -> RecordedStudy:
    return recorded(tmp_path)


def experiment_on(study: RecordedStudy) -> Experiment:
    space, setup, model = study
    return Experiment(
        name="without", space=space, setup=setup, model=model, source="notes", tell=lambda *told: None
    )


def left_out(study: RecordedStudy) -> GroupEffects:
    experiment = experiment_on(study)
    table = evidence_table(experiment.space, "notes")
    evidence = study_evidence(experiment.space, "notes", table)
    entries = experiment.entries
    return asyncio.run(leave_groups_out(experiment, "notes", entries, evidence, table.cluster_of))


def named(effects: GroupEffects, name: str) -> GroupStanding:
    [group] = [group for group in effects.groups if group.name == name]
    return group


def test_a_group_that_is_never_alone_in_a_prompt_is_judged_by_recall_without_it(study: RecordedStudy) -> None:
    experiment = experiment_on(study)
    evidence = study_evidence(experiment.space, "notes")
    assert [group.name for group in group_standings("notes", experiment.entries, evidence)] == ["notes"]
    effects = left_out(study)
    assert named(effects, "eve").utilities() == (-1.0,) * 16
    assert set(named(effects, "ann").utilities()) == {0.0}
    assert sorted(named(effects, "notes").utilities()) == [-1.0] * 8 + [0.0] * 8, "against no memory"
    reviewed = review([], RetirementTerms(rule="sign", max_share=0.5), effects.groups)
    assert [one.title for one in reviewed.groups] == ["author eve"]
    assert "16 tasks (0 helps, 16 hurts)" in reviewed.groups[0].reason
    assert "compared with recall without the group" in reviewed.groups[0].reason


def test_recorded_passes_are_not_decoded_again(study: RecordedStudy) -> None:
    assert left_out(study).calls == 32
    again = left_out(study)
    assert again.calls == 0
    assert named(again, "eve").utilities() == (-1.0,) * 16


def test_where_nothing_else_is_recalled_the_first_answer_stands(tmp_path: Path) -> None:
    study = recorded(tmp_path, calm=[("cat", "Cats sleep.", "author:ann")])
    effects = left_out(study)
    eve = named(effects, "eve")
    effect = {outcome.task: value for outcome, value in zip(eve.outcomes, eve.utilities(), strict=True)}
    assert effects.calls == 0
    assert len(effect) == 16
    assert all(value == (-1.0 if int(task[-1]) % 2 else 0.0) for task, value in effect.items())


def test_rows_that_certify_a_harm_limit_are_not_used(tmp_path: Path) -> None:
    study = recorded(tmp_path, "[fit]\nharm_limit = 0.2\n")
    space, setup, _ = study
    tasks = {outcome.task for outcome in named(left_out(study), "eve").outcomes}
    every = [f"{colour}{n}" for colour in ("green", "blue") for n in range(8)]
    table = read_table(Ledger(space.ledger), "fit", every, setup.study.seeds)
    assert tasks
    assert not tasks & certifying_tasks(table, setup.study.fit)
