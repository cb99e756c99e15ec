"""A page about one question asked of a study: tables, figures and the same numbers as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.protocol.workspace import write_json, write_text
from heedful.report.drawing import Drawing
from heedful.report.markdown import markdown_report
from heedful.report.page import small_page
from heedful.report.sheet import Sheet, plain_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    name: str
    """Of its files."""
    title: str
    sentences: Sequence[str]
    """What was found, in words."""
    sheets: Sequence[Sheet]
    drawings: Sequence[Drawing]
    summary: Mapping[str, Any]

    @property
    def text(self) -> str:
        """For a terminal."""
        return "\n\n".join(["\n".join(self.sentences), *(plain_text(sheet) for sheet in self.sheets)])


def write_analysis(folder: Path, analysis: Analysis) -> Path:
    """Write the page as HTML, Markdown and JSON into a study's folder; returns the HTML file."""
    page = folder / f"{analysis.name}.html"
    write_text(page, small_page(analysis.title, analysis.sentences, (*analysis.drawings, *analysis.sheets)))
    write_text(
        folder / f"{analysis.name}.md", markdown_report(analysis.title, analysis.sentences, analysis.sheets)
    )
    write_json(folder / f"{analysis.name}.json", analysis.summary)
    return page
