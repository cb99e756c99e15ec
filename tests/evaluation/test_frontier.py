"""Value policies at other prices of a call."""

import pytest

from heedful.evaluation.frontier import PRICES, trace_frontier
from heedful.evaluation.study_data import read_study_data
from heedful.protocol.study import FitSettings
from heedful.protocol.workspace import Workspace
from heedful.report.write import write_report
from tests.evaluation.making import make_study

SETTINGS = FitSettings(families=("gate", "value"), signals=("mean",), calibrated=False, folds=2, prior="none")


@pytest.fixture(scope="module")
def valued(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    kinds = {"rule": "memory", "retry": "retry"}
    return make_study(tmp_path_factory.mktemp("frontier") / "study", n=120, kinds=kinds, settings=SETTINGS)


def test_a_higher_price_never_makes_more_calls_and_the_locked_price_is_the_locked_policy(
    valued: Workspace,
) -> None:
    data = read_study_data(valued)
    points = trace_frontier(data)
    assert [(point.family, point.price) for point in points] == [("value", price) for price in PRICES]
    calls = [point.arm.calls for point in points]
    assert calls == sorted(calls, reverse=True)
    assert calls[0] > calls[-1]
    locked = data.lock.fit.families["value"].policy
    (same,) = [point for point in points if point.price == SETTINGS.cost]
    assert same.arm.policy == locked


def test_the_report_draws_the_frontier_with_every_arm(valued: Workspace, study: Workspace) -> None:
    report = write_report(valued)
    assert {point["family"] for point in report.summary["frontier"]} == {"value"}
    page = (valued.folder / "report.html").read_text()
    drawing = page.partition("Accuracy against calls per question")[2].partition("</svg>")[0]
    assert all(arm in drawing for arm in ("baseline", "retry", "always-rule", "heedful"))
    assert "frontier" not in write_report(study).summary, "a study without value policies has none"
