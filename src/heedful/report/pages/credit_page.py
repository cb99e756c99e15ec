"""The page about credit: which entries caused the outcomes."""

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
        title="Entries by the outcomes they carried",
        note="Present: recalled on a row that memory helped or hurt in two decodes. Carried: leaving out "
        "this entry alone reverses the outcome. The most harmful first.",
        head=("Entry", "Helps, present", "Hurts, present", "Helps, carried", "Hurts, carried"),
        rows=tuple(rows),
        empty="memory changed no outcome",
    )
    sentence = (
        f"Memory from {found.source} changed the outcome of {found.rows} rows of the {found.side} side. On "
        f"{found.unstable} of them the change did not recur when the same prompt was decoded again; these "
        f"credit no entry. On {carried} a single entry carries the change; on {found.shared} it persists "
        f"whichever entry is left out. {found.calls} model calls."
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
        sentences=(sentence,),
        tables=(table,),
        figures=(),
        summary=summary,
    )
