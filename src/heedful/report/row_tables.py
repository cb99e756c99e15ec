"""The tables about rows and entries: accuracy by confidence, coverage, helps and hurts by entry."""

from heedful.evaluation.components import SIGNAL
from heedful.evaluation.evaluate import Evaluation
from heedful.report.phrases import p_value, plain, share, signed
from heedful.report.report_table import ReportTable


def bins_table(evaluation: Evaluation) -> ReportTable:
    """Accuracy by confidence of the first pass."""
    names = tuple(evaluation.bins[0].right) if evaluation.bins else ()
    return ReportTable(
        name="bins",
        folded=True,
        title="Accuracy by confidence",
        note=f"Ten equal-mass bins by the baseline's confidence ({SIGNAL}), least sure first.",
        head=("Confidence", "n", *(f"{name} [95%]" for name in names)),
        rows=tuple(
            (
                f"{plain(one.low, 3)} to {plain(one.high, 3)}",
                str(one.right["baseline"].n),
                *(share(one.right[name]) for name in names),
            )
            for one in evaluation.bins
        ),
        empty=f"not recorded: the signal {SIGNAL} was not measured",
    )


def coverage_table(evaluation: Evaluation) -> ReportTable:
    """Risk and coverage of the baseline."""
    return ReportTable(
        name="coverage",
        folded=True,
        title="Risk and coverage",
        note=f"The baseline on the rows it is surest of ({SIGNAL}).",
        head=("Kept", "n", "Right [95%]"),
        rows=tuple(
            (f"{one.share}%", str(one.accuracy.n), share(one.accuracy)) for one in evaluation.coverage
        ),
        empty=f"not recorded: the signal {SIGNAL} was not measured",
    )


def entries_table(evaluation: Evaluation) -> ReportTable:
    """The entries with the largest net effect."""
    recalled = ", ".join(f"{one.bank} {one.recalled}" for one in evaluation.entries)
    return ReportTable(
        name="entries",
        title="Helps and hurts by entry",
        note=(
            f"Test side, memory in every prompt; entries recalled at least once: {recalled or 'none'}. Shown "
            "are the ten entries per bank with the largest |helps − hurts|. Entries recalled together share "
            "the outcome, and p is not corrected for multiple comparisons: a starting point, not a verdict."
        ),
        head=("Entry", "Bank", "Rows", "Helps", "Hurts", "HH", "p"),
        rows=tuple(
            (
                one.entry,
                one.bank,
                str(one.rows),
                str(one.helps),
                str(one.hurts),
                signed(one.net),
                p_value(one.p),
            )
            for effects in evaluation.entries
            for one in effects.shown
        ),
        words=frozenset({1}),
        empty="no entry has more helps than hurts, or the reverse",
    )
