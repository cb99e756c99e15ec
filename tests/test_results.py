"""The published results are what ledger and lock say."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from heedful import arms
from heedful.agents.agent_report import write_agent_report
from heedful.agents.agent_workspace import AgentFolder, open_agent_folder, read_entry_texts
from heedful.protocol.ledger import Ledger
from heedful.protocol.line_file import has_lines
from heedful.protocol.replay import Replayer
from heedful.protocol.table import read_table
from heedful.protocol.workspace import open_workspace
from heedful.report.write import write_report
from heedful.stats.paired import PairedCounts, count_pairs

RESULTS = Path(__file__).parents[1] / "results"
STUDIES = sorted(file.parent for file in RESULTS.glob("*/report.json"))


def test_there_are_published_results() -> None:
    assert STUDIES


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_published_report_is_rebuilt_from_its_ledger(study: Path, tmp_path: Path) -> None:
    copy = tmp_path / study.name
    shutil.copytree(study, copy)
    for report in copy.glob("report.*"):
        report.unlink()
    if has_lines(AgentFolder(copy).episodes):
        folder, agent_study = open_agent_folder(copy, None)
        write_agent_report(folder, read_entry_texts(folder, agent_study))
    else:
        write_report(open_workspace(copy, None))
    reports = {file.name for file in study.glob("report.*")} - {"report.html"}
    assert {"report.json", "report.md"} <= reports
    rebuilt, kept = (json.loads((folder / "report.json").read_text()) for folder in (copy, study))
    assert rebuilt == same_up_to_rounding(kept)
    for name in reports - {"report.json"}:
        assert (copy / name).read_bytes() == (study / name).read_bytes(), name


def same_up_to_rounding(value: Any) -> Any:
    """Processors add in different orders, so the last digits of a float may differ."""
    if isinstance(value, dict):
        return {key: same_up_to_rounding(part) for key, part in value.items()}
    if isinstance(value, list):
        return [same_up_to_rounding(part) for part in value]
    return pytest.approx(value, rel=1e-9, abs=1e-12) if isinstance(value, float) else value


def published(experiment: str) -> list[tuple[Path, Any]]:
    return [(file, json.loads(file.read_text())) for file in sorted(RESULTS.glob(f"*/{experiment}/*.json"))]


def recounted(folder: Path, told: Mapping[str, Any]) -> PairedCounts:
    """Memory in every prompt, counted from the passes of a recorded variant of a study."""
    ledger = Ledger(folder / "ledger.jsonl")
    tasks = dict.fromkeys(row.task for row in ledger.passes.values() if row.side == told["side"])
    replayer = Replayer(read_table(ledger, told["side"], list(tasks), told["seeds"]))
    right = replayer.replay(arms.always(told["source"])).right
    return count_pairs(replayer.base_right.tolist(), right.tolist())


def test_published_controls_are_what_their_ledgers_say() -> None:
    assert published("controls")
    for file, told in published("controls"):
        for one in told["rates"][1:]:
            (folder,) = file.parent.glob(f"{told['source']}-*-{one['rate']:g}")
            counts, always = recounted(folder, told), one["arms"]["always"]
            assert (counts.n, counts.helps, counts.hurts) == (always["n"], always["helps"], always["hurts"])
            assert counts.accuracy == pytest.approx(always["accuracy"])


def test_published_counterfactuals_are_what_their_ledgers_say() -> None:
    assert published("counterfactual")
    for file, told in published("counterfactual"):
        for version in told["same"]:
            mode, edit = version.split("-")
            counts = recounted(file.parent / f"{told['source']}-{edit}-{mode}", told)
            assert counts.n == told["rows"]
            said = told["arms"]["always"]["right"][version]["value"]
            assert counts.accuracy == pytest.approx(said), version


def test_published_loops_are_what_their_ledgers_say() -> None:
    assert published("refine")
    for file, told in published("refine"):
        found = [recounted(folder, told) for folder in file.parent.glob(f"{told['source']}-*/")]
        for one in told["iterations"][1:]:
            said = [one["always"][key] for key in ("n", "helps", "hurts")]
            assert said in [[counts.n, counts.helps, counts.hurts] for counts in found], f"{one} of {file}"
