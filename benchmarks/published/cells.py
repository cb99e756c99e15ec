"""The published reports, and their numbers as cells of a Markdown table."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from heedful.evaluation.arm_results import Arm, measure
from heedful.evaluation.study_data import StudyData, read_study_data
from heedful.protocol.workspace import Workspace
from heedful.report.phrases import p_value, percent, points

RESULTS = Path(__file__).parents[2] / "results"
BENCHMARKS = {"svamp": "SVAMP", "asdiv": "ASDiv", "multiarith": "MultiArith"}
NOT_YET = "not yet measured"
Fields = Mapping[str, Any]


@cache
def report(study: str) -> Fields | None:
    """The report of a published study; None if its test side was not opened yet."""
    file = RESULTS / study / "report.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def known_report(study: str) -> Fields:
    found = report(study)
    assert found is not None, f"results/{study} has no report.json"
    return found


def published(path: str) -> Any:
    """The content of a JSON file of the results: of an experiment, or of a script in benchmarks/."""
    return json.loads((RESULTS / path).read_text(encoding="utf-8"))


def newest_study(benchmark: str) -> str:
    """The study of a benchmark on rows never asked before, once it has a report; else the earlier one."""
    return f"{benchmark}-new" if report(f"{benchmark}-new") else f"{benchmark}-value"


@cache
def study_data(study: str) -> StudyData:
    return read_study_data(Workspace(RESULTS / study))


def family_arm(study: str, family: str) -> Arm:
    """A family of a study's lock on the test side, as the fit side chose it without a harm limit."""
    data = study_data(study)
    fitted = data.lock.fit.unlimited or data.lock.fit
    return measure(data, family, fitted.families[family].policy)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def span(interval: Fields) -> str:
    """A difference in points with its interval."""
    return f"{points(interval['value'])} [{points(interval['low'])}, {points(interval['high'])}]"


def right(arm: Fields) -> str:
    """The share of right answers with its interval."""
    low, high = 100 * arm["accuracy_low"], 100 * arm["accuracy_high"]
    return f"{percent(arm['accuracy'])} [{low:.1f}, {high:.1f}]"


def calls_of(arm: Fields) -> float:
    return float(arm["calls_per_task"] if "calls_per_task" in arm else arm["calls"])


def gain(arm: Fields, *, with_p: bool = True) -> str:
    """Accuracy, difference from no memory, p if it is significant, helps and hurts, calls."""
    p = arm["mcnemar_p"] if "mcnemar_p" in arm else arm["p"]
    parts = [percent(arm["accuracy"]), span(arm["delta"])]
    parts += [f"p = {p_value(p)}"] if with_p and p < 0.05 else []
    return ", ".join([*parts, f"{arm['helps']} / {arm['hurts']}", f"{calls_of(arm):.2f} calls"])


def best_always(arms: Mapping[str, Fields]) -> str:
    """The most accurate bank in every prompt."""
    always = [name for name in arms if name.startswith("always-")]
    return max(always, key=lambda name: arms[name]["accuracy"])
