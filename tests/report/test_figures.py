"""What the figures show."""

from heedful.evaluation.entry_effects import lopsided
from heedful.evaluation.evaluate import evaluate
from heedful.evaluation.study_data import read_study_data
from heedful.report.figures import entries_figure
from tests.report.conftest import ReportedStudy


def test_the_figure_of_entries_shows_those_that_moved_most(study: ReportedStudy) -> None:
    evaluation = evaluate(read_study_data(study[0]))
    drawn = lopsided(evaluation.entries, 5)
    nets = [abs(one.net) for effects in evaluation.entries for one in effects.shown]
    assert [abs(one.net) for one in drawn] == sorted(nets, reverse=True)[:5]
    svg = entries_figure(evaluation).svg
    for one in drawn:
        assert f"{one.bank} {one.entry} {one.helps} helps, {one.hurts} hurts" in svg
        assert f"{one.bank} {one.entry} (n = {one.rows})" in svg
