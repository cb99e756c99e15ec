"""The published results are what ledger and lock say."""

import shutil
from pathlib import Path

import pytest

from heedful.protocol.workspace import open_workspace
from heedful.report.build import build_report

RESULTS = Path(__file__).parents[1] / "results"
STUDIES = sorted(file.parent for file in RESULTS.glob("*/report.json"))


def test_there_are_published_results():
    assert STUDIES


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_published_report_is_rebuilt_from_its_ledger(study, tmp_path):
    copy = tmp_path / study.name
    shutil.copytree(study, copy)
    for report in copy.glob("report.*"):
        report.unlink()
    build_report(open_workspace(copy, None))
    for name in ("report.json", "report.md", "report.tex"):
        assert (copy / name).read_bytes() == (study / name).read_bytes(), name
