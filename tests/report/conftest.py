"""Studies that several tests look at, each built once."""

import pytest

from heedful.protocol.study import THRESHOLD_FAMILIES, FitSettings
from heedful.protocol.workspace import Workspace
from heedful.report.write import StudyReport, write_report
from tests.evaluation.making import make_study

NOTES = "Tried out before on 120 rows of <the old> test half & kept."
ReportedStudy = tuple[Workspace, StudyReport]


@pytest.fixture(scope="package")
def study(tmp_path_factory: pytest.TempPathFactory) -> ReportedStudy:
    """Two banks, a retry and a vote; the test side opened once."""
    space = make_study(tmp_path_factory.mktemp("report") / "study", notes=NOTES)
    return space, write_report(space)


@pytest.fixture(scope="package")
def one_bank(tmp_path_factory: pytest.TempPathFactory) -> ReportedStudy:
    space = make_study(tmp_path_factory.mktemp("report") / "one", n=120, kinds={"rule": "memory"}, openings=2)
    return space, write_report(space)


@pytest.fixture(scope="package")
def uncertified(tmp_path_factory: pytest.TempPathFactory) -> ReportedStudy:
    """A harm limit that no policy can be certified to keep."""
    settings = FitSettings(
        families=THRESHOLD_FAMILIES, signals=("mean",), calibrated=False, folds=3, harm_limit=0.001
    )
    space = make_study(tmp_path_factory.mktemp("report") / "uncertified", n=120, settings=settings)
    return space, write_report(space)
