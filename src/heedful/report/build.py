"""Build a study's report: HTML, Markdown, LaTeX and JSON, the same bytes whenever it is run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from heedful.protocol.workspace import Workspace, write_json, write_text
from heedful.report import figures, protocol_tables, row_tables, signal_tables, tables
from heedful.report.evaluate import Evaluation, evaluate
from heedful.report.finding import Finding, find
from heedful.report.latex import latex_report
from heedful.report.main_table import main_table
from heedful.report.markdown import markdown_report
from heedful.report.material import gather
from heedful.report.page import Part, Section, page
from heedful.report.sheet import Sheet, plain_text, some_columns
from heedful.report.summary import summarise
from heedful.report.wording import policy_words

SHORT = {
    "Arm": "arm",
    "Right [95%]": "right [95%]",
    "Against baseline, points [95%]": "points [95%]",
    "p": "p",
    "Helps": "helps",
    "Hurts": "hurts",
    "Calls": "calls",
}
"""Columns of the main table for a terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    summary: dict[str, Any]
    text: str
    """The result and the main table for a terminal."""


def build_report(space: Workspace) -> Built:
    """Evaluate a study from its ledger, lock and journal, and write its report into its folder."""
    evaluation = evaluate(gather(space))
    finding, summary = find(evaluation), summarise(evaluation)
    title = f"{evaluation.lock.study}: heedful report"
    said, sheets = _paragraphs(evaluation, finding), _sheets(evaluation)
    first = (figures.arms_figure(evaluation), sheets[0])
    write_text(space.folder / "report.html", page(evaluation, finding, first, _sections(evaluation)))
    write_text(space.folder / "report.md", markdown_report(title, said, sheets))
    write_text(space.folder / "report.tex", latex_report(title, said, sheets))
    write_json(space.folder / "report.json", summary)
    return Built(summary=summary, text="\n".join([*said, "", plain_text(some_columns(sheets[0], SHORT))]))


def _paragraphs(evaluation: Evaluation, finding: Finding) -> list[str]:
    lock = evaluation.lock
    said = [*protocol_tables.alarms(evaluation), finding.headline, *finding.further]
    said.append(f"The policy: {policy_words(lock.policy)}")
    if lock.notes.strip():
        said.append(f"What had been explored before: {lock.notes.strip()}")
    return said


def _sheets(evaluation: Evaluation) -> list[Sheet]:
    """The tables of the Markdown and LaTeX reports."""
    made = (
        main_table,
        tables.alternatives_table,
        tables.components_table,
        tables.stages_table,
        signal_tables.signals_table,
        signal_tables.calibration_table,
        signal_tables.separability_table,
        tables.significance_table,
        protocol_tables.cost_table,
    )
    return [make(evaluation) for make in made]


def _sections(evaluation: Evaluation) -> list[Section]:
    """The sections of the page below the first screen."""
    return [
        ("Stronger alternatives", (tables.alternatives_table(evaluation),)),
        ("Components", (tables.components_table(evaluation), tables.stages_table(evaluation))),
        (
            "Where memory helps",
            (
                figures.bins_figure(evaluation),
                row_tables.bins_table(evaluation),
                signal_tables.separability_table(evaluation),
                figures.entries_figure(evaluation),
                row_tables.entries_table(evaluation),
            ),
        ),
        (
            "Signals and threshold",
            (
                signal_tables.signals_table(evaluation),
                figures.thresholds_figure(evaluation),
                signal_tables.thresholds_table(evaluation),
            ),
        ),
        (
            "Calibration",
            (
                signal_tables.calibration_table(evaluation),
                figures.coverage_figure(evaluation),
                row_tables.coverage_table(evaluation),
            ),
        ),
        ("Significance ledger", (tables.significance_table(evaluation),)),
        ("Cost", (protocol_tables.cost_table(evaluation),)),
        ("Protocol", _protocol(evaluation)),
    ]


def _protocol(evaluation: Evaluation) -> Sequence[Part]:
    return (
        *evaluation.lock.fit.notes,
        protocol_tables.journal_table(evaluation),
        protocol_tables.certificate_table(evaluation),
        protocol_tables.fit_table(evaluation),
        protocol_tables.locked_table(evaluation),
    )
