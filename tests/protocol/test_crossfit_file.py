"""The cross-fitted result of a study, as a file."""

from pathlib import Path

import msgspec
import pytest

from heedful import UsageError
from heedful.evaluation.study_data import read_study_data
from heedful.protocol.crossfit import join_sides
from heedful.protocol.crossfit_file import Crossfit, crossfit_study, read_crossfit
from heedful.protocol.events import CROSSFITTED, read_events
from heedful.protocol.workspace import Workspace, read_json, write_json
from heedful.report.write import write_report
from tests.evaluation.making import SETTINGS, make_study


@pytest.fixture
def study(tmp_path: Path) -> Workspace:
    return make_study(tmp_path / "study", n=40, kinds={"rule": "memory", "vote": "vote"})


def folded(space: Workspace) -> Crossfit:
    data = read_study_data(space)
    table = join_sides({"fit": data.fit.table, "test": data.test.table}, data.repeats)
    return crossfit_study(space, data.lock, table, SETTINGS, 3, lambda done, total: None)


def test_the_file_has_the_same_bytes_on_each_run_and_the_event_log_has_one_line(study: Workspace) -> None:
    found = folded(study)
    before = study.crossfit.read_bytes()
    assert folded(study) == found == read_crossfit(study)
    assert study.crossfit.read_bytes() == before
    assert [event.event for event in read_events(study.events)].count(CROSSFITTED) == 1
    assert (found.procedure.n, found.rows, found.clusters) == (80, {"fit": 40, "test": 40}, 80)
    assert found.sources == ("rule",)


def test_memory_and_compute_are_cross_fitted_if_the_study_has_samples(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SETTINGS, families=("gate", "value"), prior="none", folds=2)
    kinds = {"rule": "memory", "sample": "retry"}
    space = make_study(tmp_path / "sampled", n=20, kinds=kinds, settings=settings)
    data = read_study_data(space)
    table = join_sides({"fit": data.fit.table, "test": data.test.table}, data.repeats)
    found = crossfit_study(space, data.lock, table, settings, 2, lambda done, total: None)
    gains = {name: found.families[name].delta.value for name in ("compute", "memory", "both")}
    assert {name: delta.value for name, delta in found.differences.items()} == pytest.approx(
        {
            "memory-compute": gains["memory"] - gains["compute"],
            "both-compute": gains["both"] - gains["compute"],
            "both-memory": gains["both"] - gains["memory"],
        }
    )
    assert read_crossfit(space) == found
    assert set(write_report(space).summary["crossfit"]["differences"]) == set(found.differences)
    assert "memory − compute" in (space.folder / "report.md").read_text()


def test_a_result_of_other_clusters_is_outdated(study: Workspace) -> None:
    assert read_study_data(study).crossfit is None
    found = folded(study)
    assert read_study_data(study).crossfit == found
    copies = [{"fit": ["fit-000"], "test": ["test-000"]}]
    write_json(study.clusters, {"questions": "q", "clusters": copies})
    data = read_study_data(study)
    assert (data.crossfit, data.crossfit_problem) == (None, "crossfit.json was computed from other passes")
    assert folded(study).clusters == 79


@pytest.mark.parametrize("text", ['{"n": 3}', "not JSON", "[]"])
def test_a_damaged_file_is_left_out_and_written_again(study: Workspace, text: str) -> None:
    study.crossfit.write_text(text)
    data = read_study_data(study)
    assert data.crossfit is None
    assert data.crossfit_problem.startswith("crossfit.json ")
    found = folded(study)
    assert (read_study_data(study).crossfit, read_study_data(study).crossfit_problem) == (found, "")


def test_an_edited_figure_is_noticed(study: Workspace) -> None:
    found = folded(study)
    raw = read_json(study.crossfit, "")
    write_json(study.crossfit, {**raw, "accuracy": 0.99})
    assert read_study_data(study).crossfit_problem == "crossfit.json was edited"
    with pytest.raises(UsageError, match="was edited"):
        read_crossfit(study)
    del raw["digest"]
    write_json(study.crossfit, raw)
    assert read_study_data(study).crossfit == found, "an early file has no digest of its own"


def test_the_report_of_a_small_study_shows_it_too(study: Workspace) -> None:
    assert "cross-fitted" not in write_report(study).text
    folded(study)
    assert "cross-fitted: the study's procedure" in write_report(study).text
    assert "| cross-fitted: the study's procedure | 80 |" in (study.folder / "report.md").read_text()
