"""The closed loop on a study with a rule that always misleads."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from heedful import LockError, ScriptedModel, UsageError
from heedful.experiments.refine import RefineResult, Writer, refine, with_bank_named
from heedful.experiments.study_evidence import study_evidence
from heedful.experiments.variant import Experiment, with_bank
from heedful.governance.terms import RetirementTerms
from heedful.memory.formats import read_entries
from heedful.models.scripted import Reply
from heedful.protocol.harm import choosing_rows
from heedful.protocol.ledger import Ledger
from heedful.protocol.setup import prepare
from heedful.protocol.table import read_table
from heedful.protocol.workflow import fit_study, lock_study, record
from heedful.protocol.workspace import open_workspace
from heedful.report.pages.refine_page import refine_page
from heedful.types import Prompt
from tests.making import RecordedStudy

STUDY = """
name = "sums"
[questions]
fit = "fit.jsonl"
test = "test.jsonl"
metric = "number"
[sources.rules]
bank = "rules.jsonl"
recall = "bm25"
limit = 1
[fit]
signals = ["mean"]
families = ["gate", "choose"]
calibrated = false
folds = 3
"""
RULES = {
    "good": "What apples make is the first plus the second.",
    "bad": "What pears make is the first minus the second.",
    "idle": "Figs keep.",
    "other": "What plums make is the first plus the second.",
}
BETTER = "What pears make is also the first plus the second."


def reply(prompt: Prompt) -> Reply:
    said = prompt.messages[-1].content
    if "Reply with JSON" in said:
        return (json.dumps({"difference": "d", "rule": BETTER}), -0.1)
    a, b = map(int, re.findall(r"(\d+) and (\d+)", said)[0])
    notes = said.partition("Notes")[2]
    if "minus" in notes:
        return (str(a - b), -0.1)
    return (str(a + b) if "plus" in notes or a % 2 else "1", -0.2 if notes else -0.6)


@pytest.fixture
def study(tmp_path: Path) -> RecordedStudy:
    for side, start in (("fit", 10), ("test", 200)):
        rows = [
            {
                "id": f"{side}{n}",
                "question": f"{n} and 3 {fruit} make what?",
                "answer": str(n + 3),
            }
            for n, fruit in zip(range(start, start + 60), ["apples", "pears", "plums"] * 20, strict=True)
        ]
        (tmp_path / f"{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    entries = [{"id": id, "text": text, "kind": "rule"} for id, text in RULES.items()]
    (tmp_path / "rules.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    (tmp_path / "s.toml").write_text(STUDY)
    space = open_workspace(tmp_path / "s.toml", tmp_path / "out")
    setup = prepare(space.study, None)
    model = ScriptedModel(script=reply)
    asyncio.run(record(space, setup, model, "fit", nobody))
    return space, setup, model


def nobody(*told: object) -> None:
    pass


class Apart:
    """An embedder for which no two texts are alike."""

    def embed(self, texts: Sequence[str]) -> NDArray[Any]:
        drawn = [np.random.default_rng(list(text.encode())).normal(size=64) for text in texts]
        return np.array([vector / np.linalg.norm(vector) for vector in drawn])


def writer(model: ScriptedModel) -> Writer:
    return Writer(model=model, embedder=Apart())


def refined(
    study: RecordedStudy,
    *,
    writer: Writer | None = None,
    iterations: int = 3,
    terms: RetirementTerms = RetirementTerms(max_share=0.5),
) -> RefineResult:
    space, setup, model = study
    question = Experiment(name="refine", space=space, setup=setup, model=model, source="rules", tell=nobody)
    return asyncio.run(refine(question, terms, iterations, writer))


def test_the_harmful_entry_goes_and_only_its_passes_are_decoded_again(study: RecordedStudy) -> None:
    space, _, model = study
    before = len(model.prompts)
    found = refined(study)
    first, second = found.iterations
    assert [gone.standing.entry.id for gone in second.retired] == ["bad"]
    assert second.changed == 20
    assert second.calls == 20
    assert len(model.prompts) - before == second.calls
    assert second.always.counts.hurts < first.always.counts.hurts
    assert found.chosen == 1
    assert f'bank = "{found.bank}"' in space.study.read_text()


def test_the_chosen_iteration_is_what_is_fitted_and_locked(study: RecordedStudy) -> None:
    space, _, model = study
    refined(study)
    setup = prepare(space.study, None)
    assert {e.id: e.state for e in setup.banks["rules"].entries()}["bad"] == "retired"
    before = len(model.prompts)
    asyncio.run(record(space, setup, model, "fit", nobody))
    assert len(model.prompts) == before + 1, "every pass of the chosen bank is in the study's ledger"
    fit_study(space, setup)
    lock = asyncio.run(lock_study(space, setup, model))
    assert lock.digests["bank:rules"] == setup.banks["rules"].digest


def test_with_a_harm_limit_the_loop_does_not_look_at_the_rows_that_certify(study: RecordedStudy) -> None:
    space, _, model = study
    space.study.write_text(STUDY + "harm_limit = 0.3\n")
    setup = prepare(space.study, None)
    found = refined((space, setup, model), iterations=1, terms=RetirementTerms(max_share=0.5, confidence=0.6))
    assert found.tasks == 24
    assert found.iterations[0].always.right.n == 24
    whole = read_table(Ledger(space.ledger), "fit", [item.id for item in setup.splits.fit], [0])
    seen = set(choosing_rows(whole, setup.study.fit).tasks)
    pears = {item.id for item in setup.splits.fit if "pears" in item.question}
    assert found.iterations[1].retired[0].standing.tasks == len(seen & pears) < len(pears)
    assert {one.task for one in study_evidence(space, "rules")} <= seen
    assert fit_study(space, prepare(space.study, None)).certificate.tested_on == 36


def test_rows_that_the_loop_looked_at_certify_no_harm_limit(study: RecordedStudy) -> None:
    space, _, _ = study
    refined(study)
    space.study.write_text(space.study.read_text() + "harm_limit = 0.3\n")
    with pytest.raises(LockError, match="refined on 36 of the 36 rows that would certify"):
        fit_study(space, prepare(space.study, None))


def test_a_writer_puts_a_better_rule_in_its_place(study: RecordedStudy) -> None:
    _, _, model = study
    found = refined(study, writer=writer(model))
    second = found.iterations[1]
    assert [(entry.id, entry.text) for entry in second.replaced] == [("bad'", BETTER)]
    assert second.written == 1
    assert found.iterations[found.chosen].always.counts.hurts == 0
    entries, _ = read_entries(study[0].folder / found.bank)
    assert {entry.id: entry.state for entry in entries}["bad"] == "retired"
    assert "bad'" in {entry.id for entry in entries}


def test_a_second_run_has_nothing_to_decode(study: RecordedStudy) -> None:
    refined(study)
    space, _, model = study
    before = len(model.prompts)
    again = refined((space, prepare(space.study, None), model))
    assert len(again.iterations) == 1, "the harmful entry is gone, nothing else is condemned"
    assert len(model.prompts) == before


def test_several_rounds_build_on_each_other(study: RecordedStudy) -> None:
    _, _, model = study
    before = len(model.prompts)
    numbers = iter(range(99))
    worse = ScriptedModel(
        script=lambda prompt: (
            json.dumps({"difference": "", "rule": f"What pears make is a minus b, case {next(numbers)}."}),
            -0.1,
        )
    )
    found = refined(study, writer=writer(worse), terms=RetirementTerms(max_share=0.25))
    assert len(found.iterations) == 4, "each round retires the rule that the writer put in its place"
    assert [one.changed for one in found.iterations[1:]] == [20, 20, 20]
    assert [one.calls for one in found.iterations[1:]] == [20, 20, 20]
    assert len(model.prompts) - before == 60


def test_a_bank_that_comes_back_to_what_was_recorded_costs_no_call(study: RecordedStudy) -> None:
    space, setup, model = study
    without = [entry for entry in setup.banks["rules"].entries() if entry.id != "bad"]
    for earlier in (with_bank(setup, "rules", without), setup):
        asyncio.run(record(space, earlier, model, "fit", nobody))
    second = refined(study).iterations[1]
    assert (second.changed, second.calls) == (20, 0)


def test_a_kill_while_the_chosen_passes_are_copied_costs_no_call(study: RecordedStudy) -> None:
    space, _, model = study
    before = space.ledger.read_bytes()
    refined(study)
    copied = Ledger(space.ledger).passes
    space.ledger.write_bytes(before)
    asked = len(model.prompts)
    asyncio.run(record(space, prepare(space.study, None), model, "fit", nobody))
    assert len(model.prompts) - asked == 1, "one question to see that the log-probs make sense"
    assert Ledger(space.ledger).passes == copied


def test_a_refined_study_is_not_overwritten_by_the_file_it_came_from(
    study: RecordedStudy, tmp_path: Path
) -> None:
    refined(study)
    with pytest.raises(UsageError, match="give the folder"):
        open_workspace(tmp_path / "s.toml", tmp_path / "out")


def test_passes_of_another_bank_are_not_fitted(study: RecordedStudy) -> None:
    space, setup, _ = study
    gone = [replace(e, state="retired") if e.id == "good" else e for e in setup.banks["rules"].entries()]
    with pytest.raises(UsageError, match="recorded with another bank"):
        fit_study(space, with_bank(setup, "rules", gone))


def test_a_policy_that_was_chosen_on_other_passes_is_not_locked(study: RecordedStudy) -> None:
    space, setup, model = study
    fit_study(space, setup)
    ledger = Ledger(space.ledger)
    with ledger:
        row = next(iter(ledger.passes.values()))
        ledger.append(replace(row, record=replace(row.record, text="another")))
    with pytest.raises(LockError, match="run heedful study fit again"):
        asyncio.run(lock_study(space, setup, model))


def test_nothing_condemned_changes_nothing(study: RecordedStudy) -> None:
    space, _, _ = study
    text = space.study.read_text()
    found = refined(study, terms=RetirementTerms(confidence=0.9999999))
    assert (found.chosen, len(found.iterations)) == (0, 1)
    assert space.study.read_text() == text
    assert "nothing was done" in refine_page("sums", found).text


def test_a_locked_study_stays_locked(study: RecordedStudy) -> None:
    space, setup, model = study
    fit_study(space, setup)
    asyncio.run(lock_study(space, setup, model))
    with pytest.raises(LockError, match="stays locked"):
        refined(study)


def test_the_page_has_every_round(study: RecordedStudy) -> None:
    found = refined(study)
    page = refine_page("sums", found)
    assert [one["retired"] for one in page.summary["iterations"]] == [[], ["bad"]]
    assert "bad" in page.text


def test_what_was_found_is_kept_before_the_study_is_changed(study: RecordedStudy) -> None:
    space, setup, model = study
    text, kept = space.study.read_text(), []

    def ended(found: RefineResult) -> None:
        kept.append(found)
        raise KeyboardInterrupt

    question = Experiment(name="refine", space=space, setup=setup, model=model, source="rules", tell=nobody)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(refine(question, RetirementTerms(max_share=0.5), 3, None, ended))
    assert (kept[0].chosen, space.study.read_text()) == (1, text)


def test_a_loop_that_ended_while_copying_goes_on_from_the_chosen_bank(study: RecordedStudy) -> None:
    space, _, model = study
    before = space.ledger.read_bytes()
    refined(study)
    space.ledger.write_bytes(before)
    asked = len(model.prompts)
    again = refined((space, prepare(space.study, None), model))
    assert again.iterations[0].always.counts.hurts == 0, "the passes are those of the bank that was chosen"
    assert len(model.prompts) == asked


def test_entries_that_are_condemned_but_stay_are_told(study: RecordedStudy) -> None:
    found = refined(study, terms=RetirementTerms(max_share=0.01))
    assert [one.standing.entry.id for one in found.spared] == ["bad"]
    assert "is spared" in refine_page("sums", found).text


def test_a_bank_that_no_policy_uses_is_not_refined(study: RecordedStudy) -> None:
    space, _, model = study
    bank = 'bank = "rules.jsonl"\n'
    space.study.write_text(space.study.read_text().replace(bank, f'{bank}sides = ["fit"]\n'))
    with pytest.raises(UsageError, match="no policy of the study uses rules"):
        refined((space, prepare(space.study, None), model))


def test_only_the_bank_of_the_source_is_renamed() -> None:
    toml = '[sources.a]\nbank = "x"\n[sources.b]\nsides = ["fit"]\n bank = "y"  # mine\n[fit]\n'
    renamed = '[sources.a]\nbank = "x"\n[sources.b]\nsides = ["fit"]\nbank = "z"\n[fit]\n'
    assert with_bank_named(toml, "b", "z") == renamed
    with pytest.raises(UsageError, match=r"no \[sources.c\]"):
        with_bank_named(toml, "c", "z")


KILLED = """
import os, signal, sys
from pathlib import Path
from heedful import ScriptedModel
from heedful.protocol.setup import prepare
from heedful.protocol.workspace import open_workspace
from tests.experiments.test_refine import refined, reply

asked = 0
def ends(prompt):
    global asked
    asked += 1
    if asked > int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return reply(prompt)

space = open_workspace(Path(sys.argv[1]), None)
setup = prepare(space.study, None)
model = ScriptedModel(script=ends)
refined((space, setup, model))
"""


@pytest.mark.slow
@pytest.mark.parametrize("calls", [0, 3, 11])
def test_a_loop_that_is_killed_leaves_no_half_state_and_goes_on(study: RecordedStudy, calls: int) -> None:
    space, _, model = study
    before = space.study.read_text()
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(space.folder), str(calls)], capture_output=True, check=False
    )
    assert ended.returncode == -9, ended.stderr.decode()
    assert space.study.read_text() == before
    assert len(Ledger(space.ledger).passes) == 120
    asked = len(model.prompts)
    found = refined((space, prepare(space.study, None), model))
    assert found.chosen == 1
    assert 20 - calls <= found.iterations[1].calls <= 20
    assert len(model.prompts) - asked == found.iterations[1].calls
