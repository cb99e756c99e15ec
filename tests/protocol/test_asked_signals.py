"""Studies of models without log-probs."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from heedful import LogprobError, ModelError, ScriptedModel
from heedful.models.scripted import SCRIPTED, Reply
from heedful.protocol.ledger import Ledger
from heedful.protocol.setup import prepare
from heedful.protocol.workflow import fit_study, open_test_side, record
from heedful.protocol.workspace import open_workspace
from heedful.report.write import write_report
from heedful.types import Prompt
from tests.making import PreparedStudy, reply_of
from tests.protocol.shelves import ROWS, STUDY, nobody, shelf_model, through_lock, written

SMALL = (
    STUDY.partition("[sources.other]")[0]
    + "[fit]\nfamilies = ['gate', 'choose']\nfirsts = ['none']\nfolds = 3\n"
)
SILENT = replace(SCRIPTED, logprobs=False, top_logprobs=0)


def silent_model() -> ScriptedModel:
    """The shelf model without log-probs, which states 90 when the note is there and 30 otherwise."""
    knowing = shelf_model()

    def reply(prompt: Prompt) -> Reply:
        if "How likely" in prompt.messages[-1].content:
            return "90" if "holds" in str(prompt.messages[:-2]) else "30"
        return reply_of(knowing, prompt)

    return ScriptedModel(script=reply, traits=SILENT)


def naming(folder: Path, signals: str) -> Path:
    return written(folder, SMALL.replace("[fit]", f"[fit]\nsignals = {signals}"))


def opened(file: Path) -> PreparedStudy:
    space = open_workspace(file, file.parent / "out")
    return space, prepare(space.study, None)


def test_a_study_fits_tests_and_reports_a_stated_confidence(tmp_path: Path) -> None:
    model = silent_model()
    space, setup = through_lock(naming(tmp_path, "['stated']"), model)
    asyncio.run(open_test_side(space, setup, model, nobody))
    rows = list(Ledger(space.ledger).passes.values())
    asking = [row.record for row in rows if row.record.source in ("none", "notes")]
    assert all(record.signal_costs["stated"].calls == 1 for record in asking)
    assert {record.signals["stated"] for record in asking if record.source == "none"} == {0.3}
    report = write_report(space).summary
    assert report["policy"]["signal"] == "stated"
    assert report["arms"]["baseline"]["calls_per_task"] == 1
    assert report["arms"]["heedful"]["helps"] > report["arms"]["heedful"]["hurts"]
    assert report["arms"]["heedful"]["calls_per_task"] >= 3, "answer, its confidence, answer with memory"
    tries = 2  # one question before each side, to see whether there are log-probs
    assert report["model_calls"] == len(model.prompts) - tries
    asyncio.run(open_test_side(space, setup, model, nobody))
    assert report["model_calls"] == len(model.prompts) - tries


def test_a_study_that_names_no_signals_uses_agreement(tmp_path: Path) -> None:
    model = silent_model()
    space, setup = opened(written(tmp_path, SMALL))
    asyncio.run(record(space, setup, model, "fit", nobody))
    fitted = fit_study(space, setup)
    assert fitted.policy.signal == "agreement"
    assert fitted.notes == ("The passes have no log-probs; confidence is measured by agreement.",)
    assert len(model.prompts) == 1 + 2 * ROWS * 4


def test_a_study_that_names_only_signals_of_logprobs_is_refused(tmp_path: Path) -> None:
    space, setup = opened(naming(tmp_path, "['mean']"))
    with pytest.raises(LogprobError, match=r"nothing was recorded.*agreement, ptrue or stated"):
        asyncio.run(record(space, setup, silent_model(), "fit", nobody))
    assert not space.ledger.exists()


def test_a_signal_that_is_named_later_is_measured_on_every_pass(tmp_path: Path) -> None:
    model = shelf_model()
    space, setup = opened(naming(tmp_path, "['mean']"))
    asyncio.run(record(space, setup, model, "fit", nobody))
    assert len(model.prompts) == 1 + 2 * ROWS
    space, setup = opened(naming(tmp_path, "['mean', 'ptrue']"))
    ledger = asyncio.run(record(space, setup, model, "fit", nobody))
    assert all(set(row.record.signal_costs) == {"ptrue"} for row in ledger.passes.values())
    asked = len(model.prompts)
    asyncio.run(record(space, setup, model, "fit", nobody))
    assert len(model.prompts) == asked + 1


def test_an_endpoint_that_breaks_off_during_a_question_about_confidence_stops_the_recording(
    tmp_path: Path,
) -> None:
    knowing = silent_model()

    def breaks(prompt: Prompt) -> Reply:
        asked = "How likely" in prompt.messages[-1].content
        return ModelError("down") if asked else reply_of(knowing, prompt)

    space, setup = opened(naming(tmp_path, "['stated']"))
    with pytest.raises(ModelError, match="5 passes failed in a row"):
        asyncio.run(record(space, setup, ScriptedModel(script=breaks, traits=SILENT), "fit", nobody))
