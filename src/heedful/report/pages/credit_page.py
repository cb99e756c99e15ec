"""Which entries carried the outcomes, as a page."""

from dataclasses import asdict

from heedful.experiments.entry_credit import CreditResult
from heedful.report.pages.experiment_page import ExperimentPage
from heedful.report.report_table import ReportTable


def credit_page(study: str, found: CreditResult) -> ExperimentPage:
    carried = found.rows - found.unstable - found.shared
    rows = [
        (
            one.entry,
            str(one.helps),
            str(one.hurts),
            str(one.carried_helps),
            str(one.carried_hurts),
        )
        for one in found.entries
    ]
    table = ReportTable(
        name="credit",
        title="Entries by what they carried",
        note="Present: recalled on a row that memory helped or hurt, twice. Carried: leaving this entry out, "
        "and only this one, turns the outcome round. The most harmful first.",
        head=("Entry", "Helps, present", "Hurts, present", "Helps, carried", "Hurts, carried"),
        rows=tuple(rows),
        empty="memory changed no outcome",
    )
    said = (
        f"Memory of {found.source} changed the outcome of {found.rows} rows of the {found.side} side. On "
        f"{found.unstable} of them it did not come back when the same prompt was decoded once more; these "
        f"credit nobody. On {carried} a single entry carries it; on {found.shared} it stays whichever one is "
        f"left out. {found.calls} model calls."
    )
    summary = {
        "rows": found.rows,
        "unstable": found.unstable,
        "shared": found.shared,
        "calls": found.calls,
        "entries": [asdict(one) for one in found.entries],
    }
    return ExperimentPage(
        title=f"{study}: which entries of {found.source} carried the outcomes",
        sentences=(said,),
        tables=(table,),
        figures=(),
        summary=summary,
    )
