from pathlib import Path

from heedful.evaluation.reliability import BINS, check_estimators
from heedful.evaluation.study_data import read_study_data
from heedful.protocol.study import FitSettings
from heedful.report.write import write_report
from tests.evaluation.making import make_study

VALUE = FitSettings(families=("gate", "value"), signals=("mean",), calibrated=False, folds=2)


def test_the_chances_of_every_value_policy_are_checked_on_the_test_side(tmp_path: Path) -> None:
    space = make_study(tmp_path, n=120, settings=VALUE)
    data = read_study_data(space)
    found = {one.family: one for one in check_estimators(data)}
    assert set(found) == {"value"}
    answers = sum(int(data.test.table.column(name).decoded.sum()) for name in ("none", *data.tuned_banks))
    for one in found.values():
        assert one.measured.n == answers
        assert len(one.bins) == BINS
        chances = [part.chance for part in one.bins]
        assert chances == sorted(chances)
    own = found["value"].bins
    assert own[-1].right.value > own[0].right.value, "higher chances are right more often"
    report = write_report(space)
    assert [one["family"] for one in report.summary["reliability"]] == ["value"]
    assert "Are the estimated chances right?" in (space.folder / "report.html").read_text()


def test_a_study_without_value_policies_has_nothing_to_check(tmp_path: Path) -> None:
    space = make_study(tmp_path, n=60)
    assert check_estimators(read_study_data(space)) == ()
    assert write_report(space).summary["reliability"] == []
    assert "Are the estimated chances right?" not in (space.folder / "report.html").read_text()
