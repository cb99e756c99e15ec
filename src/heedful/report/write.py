"""Build a study's report as HTML, Markdown, LaTeX and JSON: the same bytes on every run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from heedful.evaluation.evaluate import Evaluation, evaluate
from heedful.evaluation.study_data import read_study_data
from heedful.protocol.study_texts import read_own_texts
from heedful.protocol.workspace import Workspace, write_json, write_text
from heedful.report import (
    certificate_tables,
    comparison_tables,
    figures,
    harm_tables,
    protocol_tables,
    row_tables,
    signal_tables,
)
from heedful.report.conclusion import Conclusion, conclude
from heedful.report.crossfit_table import crossfit_table
from heedful.report.frontier import frontier_figure, frontier_table
from heedful.report.latex import latex_report
from heedful.report.main_table import main_table
from heedful.report.markdown import markdown_report
from heedful.report.matched_table import matched_table
from heedful.report.page import Part, Section, page
from heedful.report.phrases import policy_words
from heedful.report.report_table import ReportTable, plain_text, some_columns
from heedful.report.summary import summarise

SHORT = {
    "Arm": "arm",
    "Right [95%]": "right [95%]",
    "Against baseline, points [95%]": "points [95%]",
    "p": "p",
    "Helps": "helps",
    "Hurts": "hurts",
    "Calls": "calls",
    "Tokens": "tokens",
}
"""Columns of the main table for a terminal."""
FEWEST_QUESTIONS = 100
LEFT_OUT = (
    f"With fewer than {FEWEST_QUESTIONS} test questions, comparisons of components, signals, thresholds and "
    "calibration show noise only, so the report leaves them out; report.json has their numbers."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyReport:
    summary: dict[str, Any]
    text: str
    """The result, the main table and the cross-fitted evaluation for a terminal."""


def write_report(space: Workspace, *, texts: bool = True) -> StudyReport:
    """Evaluate a study from its ledger, lock and journal, and write its report into its folder.

    `texts`: show the user's own questions, answers and entries, if they are in the folder.
    """
    evaluation = evaluate(read_study_data(space, read_own_texts(space) if texts else None))
    conclusion, summary = conclude(evaluation), summarise(evaluation)
    title = f"{evaluation.lock.study}: heedful report"
    paragraphs, tables = _paragraphs(evaluation, conclusion), _tables(evaluation)
    first = (figures.arms_figure(evaluation), tables[0])
    write_text(space.folder / "report.html", page(evaluation, conclusion, first, _sections(evaluation)))
    write_text(space.folder / "report.md", markdown_report(title, paragraphs, tables))
    write_text(space.folder / "report.tex", latex_report(title, paragraphs, tables))
    write_json(space.folder / "report.json", summary)
    text = [*paragraphs, "", plain_text(some_columns(tables[0], SHORT))]
    for table in (matched_table(evaluation), crossfit_table(evaluation)):
        if table is not None:
            text += ["", f"{table.title}:", plain_text(table)]
    return StudyReport(summary=summary, text="\n".join(text))


def _paragraphs(evaluation: Evaluation, conclusion: Conclusion) -> list[str]:
    lock = evaluation.lock
    paragraphs = [*protocol_tables.alarms(evaluation), conclusion.headline, *conclusion.further]
    if is_small(evaluation):
        paragraphs.append(LEFT_OUT)
    paragraphs.append(f"The policy: {policy_words(lock.policy)}")
    if lock.notes.strip():
        paragraphs.append(f"Explored before this study: {lock.notes.strip()}")
    return paragraphs


def is_small(evaluation: Evaluation) -> bool:
    """Whether comparisons of parts and signals would show noise only."""
    return evaluation.tasks < FEWEST_QUESTIONS


def _tables(evaluation: Evaluation) -> list[ReportTable]:
    """The tables of the Markdown and LaTeX reports."""
    crossfit, limits = crossfit_table(evaluation), certificate_tables.limits_table(evaluation)
    matched = matched_table(evaluation)
    if is_small(evaluation):
        few = (main_table(evaluation), matched, crossfit, protocol_tables.cost_table(evaluation))
        return [table for table in few if table is not None]
    tables = (
        main_table,
        harm_tables.families_table,
        harm_tables.harm_table,
        comparison_tables.alternatives_table,
        comparison_tables.components_table,
        comparison_tables.stages_table,
        signal_tables.signals_table,
        signal_tables.calibration_table,
        signal_tables.separability_table,
        comparison_tables.significance_table,
        protocol_tables.cost_table,
    )
    main, families, harm, *others = (table(evaluation) for table in tables)
    kept = (main, matched, crossfit, families, harm, limits, *others)
    return [table for table in kept if table is not None]


def _sections(evaluation: Evaluation) -> list[Section]:
    """The sections of the page below the first screen."""
    changes = row_tables.changes_table(evaluation)
    whole = (changes, matched_table(evaluation), crossfit_table(evaluation))
    first: list[Section] = [(table.title, (table,)) for table in whole if table is not None]
    last: list[Section] = [
        ("Cost", (protocol_tables.cost_table(evaluation),)),
        ("Protocol", _protocol(evaluation)),
    ]
    if is_small(evaluation):
        entries: Section = ("Entries", (row_tables.entries_table(evaluation), LEFT_OUT))
        return [*first, entries, *last]
    return [*first, *_comparisons(evaluation), *last]


def _comparisons(evaluation: Evaluation) -> list[Section]:
    """The sections that compare parts and signals."""
    return [
        *_cost_section(evaluation),
        ("Families", (harm_tables.families_table(evaluation),)),
        (
            "Harm",
            (harm_tables.harm_table(evaluation), certificate_tables.limits_table(evaluation)),
        ),
        ("Stronger alternatives", (comparison_tables.alternatives_table(evaluation),)),
        (
            "Components",
            (comparison_tables.components_table(evaluation), comparison_tables.stages_table(evaluation)),
        ),
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
                figures.reliability_figure(evaluation),
                figures.coverage_figure(evaluation),
                row_tables.coverage_table(evaluation),
            ),
        ),
        ("Significance ledger", (comparison_tables.significance_table(evaluation),)),
    ]


def _cost_section(evaluation: Evaluation) -> list[Section]:
    """Accuracy against cost, if the study has value policies."""
    parts = (
        frontier_figure(evaluation, "calls"),
        frontier_figure(evaluation, "tokens"),
        frontier_table(evaluation),
    )
    return [("Accuracy and cost", parts)] if evaluation.frontier else []


def _protocol(evaluation: Evaluation) -> Sequence[Part]:
    return (
        *evaluation.lock.fit.notes,
        protocol_tables.journal_table(evaluation),
        *certificate_tables.certificate_tables(evaluation),
        protocol_tables.fit_table(evaluation),
        protocol_tables.locked_table(evaluation),
    )
