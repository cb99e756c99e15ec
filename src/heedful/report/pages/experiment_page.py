"""A page about one experiment: sentences, tables, figures, and the same numbers as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from heedful.experiments.arm_measures import ArmMeasure
from heedful.experiments.variant import ExperimentOrigin
from heedful.protocol.workspace import write_json, write_text
from heedful.report.markdown import markdown_report
from heedful.report.page import small_page
from heedful.report.report_table import ReportTable, plain_text
from heedful.report.svg import Figure
from heedful.types import Policy, Side


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentPage:
    title: str
    sentences: Sequence[str]
    """The result in words."""
    tables: Sequence[ReportTable]
    figures: Sequence[Figure]
    summary: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The page for a terminal."""
        return "\n\n".join(["\n".join(self.sentences), *(plain_text(table) for table in self.tables)])


def write_page(file: Path, page: ExperimentPage, origin: ExperimentOrigin) -> dict[str, Any]:
    """Write the page as HTML, Markdown and JSON; returns the content of the JSON."""
    sentences = [*page.sentences, _about(origin)]
    summary = {**asdict(origin), **page.summary}
    write_text(file, small_page(page.title, sentences, (*page.figures, *page.tables)))
    write_text(file.with_suffix(".md"), markdown_report(page.title, sentences, page.tables))
    write_json(file.with_suffix(".json"), summary)
    return summary


def _about(origin: ExperimentOrigin) -> str:
    seeds = ", ".join(map(str, origin.seeds))
    return (
        f"{origin.tasks} tasks of the {origin.side} side of {origin.benchmark}, "
        f"model {origin.model}, seeds {seeds}. Command: {origin.command}"
    )


def caveats(source: str, side: Side, policies: Mapping[str, Policy]) -> list[str]:
    """What a reader of the arms must keep in mind."""
    sentences = []
    if side == "fit" and len(policies) > 1:
        sentences.append(
            "Arms other than always were chosen on these passes of the fit side, so their results with the "
            "original bank are optimistic: part of what they lose is luck that another decode does not "
            "repeat. The test side has no such bias."
        )
    own = policies.get("heedful")
    if own is not None and source not in (own.first, *own.sources):
        sentences.append(
            f"The study's policy does not use {source}, so no change to that bank affects heedful."
        )
    return sentences


def arm_fields(measured: ArmMeasure) -> dict[str, Any]:
    """An arm as JSON."""
    return {
        "n": measured.counts.n,
        "accuracy": measured.right.value,
        "right": asdict(measured.right),
        "hurt": asdict(measured.hurt),
        "change": asdict(measured.change),
        "helps": measured.counts.helps,
        "hurts": measured.counts.hurts,
        "calls_per_task": measured.calls,
        "tokens_per_task": measured.tokens,
    }
