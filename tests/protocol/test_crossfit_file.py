"""The cross-fitted result of a study, as a file."""

from pathlib import Path

import pytest

from heedful import UsageError
from heedful.evaluation.study_data import read_study_data
from heedful.protocol.crossfit import join_sides
from heedful.protocol.crossfit_file import Crossfit, crossfit_study, read_crossfit
from heedful.protocol.events import CROSSFITTED, read_events
from heedful.protocol.workspace import Workspace, write_json
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


def test_a_result_of_other_clusters_is_outdated(study: Workspace) -> None:
    assert read_study_data(study).crossfit is None
    found = folded(study)
    assert read_study_data(study).crossfit == found
    copies = [{"fit": ["fit-000"], "test": ["test-000"]}]
    write_json(study.clusters, {"questions": "q", "clusters": copies})
    data = read_study_data(study)
    assert (data.crossfit, data.crossfit_outdated) == (None, True)
    assert folded(study).clusters == 79


def test_a_file_that_holds_something_else_is_named(study: Workspace) -> None:
    study.crossfit.write_text('{"n": 3}')
    with pytest.raises(UsageError, match=r"crossfit\.json is not a cross-fitted result"):
        read_crossfit(study)
