"""The tables about rows and entries: changed rows, accuracy by confidence, coverage, effects of entries."""

from heedful.evaluation.components import SIGNAL
from heedful.evaluation.evaluate import Evaluation
from heedful.report.phrases import p_value, plain, share, signed
from heedful.report.report_table import ReportTable

CHANGES_SHOWN = 200


def changes_table(evaluation: Evaluation) -> ReportTable | None:
    """The rows that the policy spoiled or mended, in words; None if the report shows no texts."""
    if evaluation.words is None:
        return None
    shown = evaluation.words.changes[:CHANGES_SHOWN]
    more = len(evaluation.words.changes) - len(shown)
    return ReportTable(
        name="changes",
        title="Answers that memory changed",
        note=(
            "Test side, the locked policy against the model without memory. Spoiled: right without memory, "
            "wrong in the end; mended: the reverse. heedful study rows shows every row of every arm."
            + (f" {more} further rows are left out." if more else "")
        ),
        head=("Row", "Effect", "Question", "Right answer", "Without memory", "In the end", "Recalled"),
        rows=tuple(
            (
                row.task,
                row.effect,
                row.question,
                " | ".join(row.targets),
                row.first_answer,
                f"{row.final_answer} ({row.source})",
                " · ".join(entry.text or entry.id for entry in row.entries),
            )
            for row in shown
        ),
        warned=frozenset(at for at, row in enumerate(shown) if row.effect == "spoiled"),
        words=frozenset(range(1, 7)),
        empty="the policy changed no answer from wrong to right or from right to wrong",
    )


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
    texts = {} if evaluation.words is None else evaluation.words.entries
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
                texts.get((one.bank, one.entry), one.entry),
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
