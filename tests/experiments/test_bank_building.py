"""Building banks with a scripted model and a scripted writer."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from heedful import HeedfulError, ScriptedModel, UsageError
from heedful.experiments.bank_building import (
    BankBuild,
    build_exemplars,
    build_rules,
    build_worked,
    write_bank,
    write_responses,
)
from heedful.memory.embed import MiniLM
from heedful.memory.formats import read_entries
from heedful.models.scripted import Reply
from heedful.protocol.setup import prepare
from heedful.protocol.workspace import open_workspace
from heedful.types import Prompt
from tests.making import PreparedStudy, reply_of

STUDY = """
name = "sums"
[questions]
fit = "fit.jsonl"
test = "test.jsonl"
metric = "number"
[split]
fit = 4
pool = 16
[sources.retry]
kind = "retry"
"""


@pytest.fixture
def study(tmp_path: Path) -> PreparedStudy:
    rows = [
        {
            "id": f"f{n}",
            "question": f"A box holds {n} nails and {n} bolts; how many in all?",
            "answer": str(2 * n),
        }
        for n in range(10, 29)
    ]
    rows.append({"id": "leak", "question": "What is on the blue shelf in the hall?", "answer": "7"})
    (tmp_path / "fit.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    test = {"id": "t1", "question": "What's on the blue shelf in the hall?", "answer": "7"}
    (tmp_path / "test.jsonl").write_text(json.dumps(test) + "\n")
    (tmp_path / "s.toml").write_text(STUDY)
    space = open_workspace(tmp_path / "s.toml", tmp_path / "out")
    return space, prepare(space.study, None)


def solver() -> ScriptedModel:
    """Right greedily below 20; the samples are wrong."""

    def reply(prompt: Prompt) -> Reply:
        found = re.search(r"(\d+) nails", prompt.messages[-1].content)
        n = int(found[1]) if found else 0
        return (str(2 * n if n < 20 and prompt.temperature == 0 else 1), -0.3)

    return ScriptedModel(script=reply)


def writer(*replies: str) -> ScriptedModel:
    said = iter(replies)
    return ScriptedModel(
        script=lambda prompt: (next(said, '{"operation": "none", "id": "", "rule": ""}'), -0.3)
    )


LESSON = '{"difference": "d", "rule": "Add the counts of every kind that is asked about."}'
LIKE_IT = '{"difference": "d", "rule": "Add up the counts of all kinds that are asked about."}'
UNLIKE = '{"difference": "d", "rule": "Never answer with a number from nowhere."}'
ADD = '{"operation": "add", "id": "", "rule": ""}'


@pytest.fixture
def embedder(minilm: Path) -> MiniLM:
    return MiniLM(minilm)


def nobody(*told: object) -> None:
    pass


def test_exemplars_come_from_the_pool_and_nothing_of_the_test_side(
    study: PreparedStudy, embedder: MiniLM
) -> None:
    space, setup = study
    model = solver()
    built = asyncio.run(build_exemplars(space, setup, model, embedder, 5, nobody))
    pool = {item.question for item in setup.splits.pool}
    assert len(built.entries) == 5
    assert {entry.text for entry in built.entries} <= pool
    assert built.leaked == ("leak" in {item.id for item in setup.splits.pool})
    assert built.rollouts == len(model.prompts) == 16
    again = asyncio.run(build_exemplars(space, setup, model, embedder, 5, nobody))
    assert again.entries == built.entries
    assert len(model.prompts) == 16, "a second run decodes nothing"


def test_worked_answers_are_the_models_own_right_attempts_without_the_questions(
    study: PreparedStudy, tmp_path: Path, embedder: MiniLM
) -> None:
    space, setup = study
    plain = solver()
    model = ScriptedModel(
        script=lambda p: ("7", -0.3) if "blue" in p.messages[-1].content else reply_of(plain, p)
    )
    worked, built = asyncio.run(build_worked(space, setup, model, embedder, nobody))
    right = {i.id for i in setup.splits.pool if i.id != "leak" and int(i.answer) < 40}
    assert set(worked) == right
    assert built.leaked == ("leak" in {item.id for item in setup.splits.pool})
    assert built.rollouts == 16 * 4
    write_responses(tmp_path / "worked.jsonl", worked)
    text = (tmp_path / "worked.jsonl").read_text()
    assert "nails" not in text
    source = '[sources.own]\nbank = "pool"\nresponses = "worked.jsonl"\nrecall = "bm25"\n'
    (tmp_path / "s.toml").write_text(STUDY + source)
    again = open_workspace(tmp_path / "s.toml", tmp_path / "again")
    entries = prepare(again.study, None).banks["own"].entries()
    assert {entry.response for entry in entries} == set(worked.values())
    assert all("nails" in entry.text for entry in entries)
    (again.folder / "worked.jsonl").write_text('{"id": 3}\n')
    with pytest.raises(UsageError, match="line 1 is not a worked answer"):
        prepare(again.study, None)


def rules(
    study: PreparedStudy, embedder: MiniLM, said: ScriptedModel, budget: int = 200, size: int = 50
) -> BankBuild:
    space, setup = study
    return asyncio.run(build_rules(space, setup, solver(), said, embedder, size, budget, nobody, nobody))


def test_rules_are_distilled_added_updated_and_deleted(study: PreparedStudy, embedder: MiniLM) -> None:
    said = writer(
        LESSON,
        *(LIKE_IT, ADD),
        *(LESSON, '{"operation": "update", "id": "r1", "rule": "Add the counts of all kinds asked about."}'),
        *(LESSON, '{"operation": "delete", "id": "r2", "rule": ""}'),
        *(LESSON, "I have no idea."),
    )
    built = rules(study, embedder, said, budget=9)
    assert [(entry.id, entry.text) for entry in built.entries] == [
        ("r1", "Add the counts of all kinds asked about.")
    ]
    assert (built.written, built.nonsense) == (9, 1)
    assert (built.groups, built.leaked) == (15, 1), "the row that is on the test side teaches nothing"


def test_a_lesson_about_something_else_is_added_without_asking(
    study: PreparedStudy, embedder: MiniLM
) -> None:
    said = writer(LESSON, UNLIKE)
    built = rules(study, embedder, said, budget=3)
    assert [entry.id for entry in built.entries] == ["r1", "r2"]
    assert built.written == 2


def test_an_ended_run_goes_on_where_it_was(study: PreparedStudy, embedder: MiniLM) -> None:
    rules(study, embedder, writer(LESSON), budget=1)
    log = study[0].folder / "build" / "replies.jsonl"
    log.write_bytes(log.read_bytes() + b'{"prompt": "cut')
    said = writer(LIKE_IT, ADD)
    built = rules(study, embedder, said, budget=3)
    assert [entry.id for entry in built.entries] == ["r1", "r2"]
    assert len(said.prompts) == 2, "the first step is not made again"
    assert built.written == 3


def test_a_list_that_is_full_takes_no_more(study: PreparedStudy, embedder: MiniLM) -> None:
    assert len(rules(study, embedder, writer(LESSON, UNLIKE), budget=3, size=1).entries) == 1


def test_a_writer_that_talks_nonsense_is_named_and_no_bank_is_written(
    study: PreparedStudy, embedder: MiniLM
) -> None:
    with pytest.raises(HeedfulError, match="gave no rule that makes sense in 15 calls"):
        rules(study, embedder, ScriptedModel(script=lambda prompt: "blah"))


def test_a_budget_that_allows_no_rule_is_told_and_no_bank_is_written(
    study: PreparedStudy, embedder: MiniLM
) -> None:
    with pytest.raises(UsageError, match="with a budget of 0 calls; give a larger --budget"):
        rules(study, embedder, writer(LESSON), budget=0)


def test_a_smaller_budget_builds_again_without_a_call_and_tells_its_cost(
    study: PreparedStudy, embedder: MiniLM, tmp_path: Path
) -> None:
    rules(study, embedder, writer(LESSON, LIKE_IT, ADD), budget=3)
    silent = writer()
    small = rules(study, embedder, silent, budget=1)
    assert (len(small.entries), len(silent.prompts)) == (1, 0)
    write_bank(tmp_path / "small.jsonl", small)
    cost = json.loads((tmp_path / "small.cost.json").read_text())
    assert cost == {"rollouts": 16 * 4, "written": 1}


def test_a_study_without_a_pool_is_told_what_it_needs(
    study: PreparedStudy, embedder: MiniLM, tmp_path: Path
) -> None:
    (tmp_path / "s.toml").write_text(STUDY.replace("pool = 16", ""))
    space = open_workspace(tmp_path / "s.toml", tmp_path / "other")
    with pytest.raises(UsageError, match="pool = 100"):
        asyncio.run(build_exemplars(space, prepare(space.study, None), solver(), embedder, 5, nobody))


def test_the_bank_is_a_file_that_a_study_reads(
    study: PreparedStudy, embedder: MiniLM, tmp_path: Path
) -> None:
    built = rules(study, embedder, writer(LESSON), budget=1)
    write_bank(tmp_path / "r.jsonl", built)
    assert read_entries(tmp_path / "r.jsonl")[0] == list(built.entries)
