"""Suspects are recalled on purpose, on the nearest fit tasks that did not recall them."""

import asyncio
from pathlib import Path

import pytest

from heedful.experiments.suspect_probe import ProbeResult, probe_suspects
from heedful.experiments.variant import Experiment
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
limit = 1
"""
NOTES = {"trap": "The green desk opens at nine.", "calm": "The blue desk, the red desk and the dog."}
QUESTIONS = {
    **{f"green{n}": f"When does green desk number {n} open?" for n in range(2)},
    **{f"blue{n}": f"When does blue desk number {n} open?" for n in range(9)},
    "dog": "Does a dog bark?",
}


def reply(prompt: Prompt) -> Reply:
    """Believes `nine` in its notes."""
    notes = prompt.messages[-1].content.partition("Notes that may help")[2]
    return ("nine" if "nine" in notes else "seven", -0.5)


def recorded(folder: Path, settings: str = "") -> RecordedStudy:
    rows = [{"id": id, "question": text, "answer": "seven"} for id, text in QUESTIONS.items()]
    last = [{"id": "t", "question": "When does the black door open?", "answer": "seven"}]
    notes = [{"id": id, "text": text, "kind": "fact"} for id, text in NOTES.items()]
    return record_study(folder, STUDY + settings, {"q": rows, "t": last, "notes": notes}, reply)


@pytest.fixture
def study(tmp_path: Path) -> RecordedStudy:
    return recorded(tmp_path)


def probed(study: RecordedStudy, count: int, *ids: str) -> ProbeResult:
    space, setup, model = study
    experiment = Experiment(
        name="probe", space=space, setup=setup, model=model, source="notes", tell=lambda *told: None
    )
    wanted = [entry for entry in experiment.entries if entry.id in ids]
    return asyncio.run(probe_suspects(experiment, wanted, count))


def test_a_probe_puts_the_entry_alone_into_the_nearest_tasks_without_it(study: RecordedStudy) -> None:
    found = probed(study, 5, "trap")
    assert {one.task for one in found.evidence} <= {f"blue{n}" for n in range(9)}, "the dog is far away"
    assert [(one.entry, one.utility) for one in found.evidence] == [("trap", -1.0)] * 5
    prompts = study[2].prompts[-5:]
    assert all("nine" in one.messages[-1].content for one in prompts)
    assert not any("dog" in one.messages[-1].content for one in prompts)


def test_an_interrupted_run_resumes_and_more_probes_cost_only_themselves(study: RecordedStudy) -> None:
    assert probed(study, 2, "trap").calls == 2
    assert probed(study, 2, "trap").calls == 0
    more = probed(study, 5, "trap", "calm")
    assert len([one for one in more.evidence if one.entry == "trap"]) == 5
    harmless = [one.utility for one in more.evidence if one.entry == "calm"]
    assert harmless == [0.0, 0.0]
    assert more.calls == 3 + 2


def test_fewer_tasks_than_probes_are_all_used(study: RecordedStudy) -> None:
    assert len(probed(study, 100, "trap").evidence) == 9


def test_rows_that_certify_a_harm_limit_are_not_probed(tmp_path: Path) -> None:
    space, setup, model = recorded(tmp_path, "[fit]\nharm_limit = 0.2\n")
    found = probed((space, setup, model), 100, "trap")
    table = read_table(Ledger(space.ledger), "fit", list(QUESTIONS), setup.study.seeds)
    assert found.evidence
    assert not {one.task for one in found.evidence} & certifying_tasks(table, setup.study.fit)
