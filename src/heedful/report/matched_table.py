"""The table that tells memory from compute."""

from heedful.evaluation.arm_results import Arm, PairedChange
from heedful.evaluation.evaluate import Evaluation
from heedful.protocol.matched import BOTH, COMPUTE, MEMORY
from heedful.report.main_table import rows_of
from heedful.report.phrases import change, p_value, plain, share
from heedful.report.report_table import ReportTable

NAMES = {
    COMPUTE: "Δ compute: value of samples without memory",
    MEMORY: "Δ memory: value of passes with memory",
    BOTH: "value of both",
}
SHORT = {COMPUTE: "samples", MEMORY: "memory", BOTH: "both"}


def matched_table(evaluation: Evaluation) -> ReportTable | None:
    """Value policies over samples, banks and both, and their differences; None without samples."""
    matched = evaluation.matched
    if matched is None:
        return None
    rows = [_arm_row(NAMES[arm.name], arm) for arm in matched.arms]
    rows += [
        (f"{SHORT[one.first]} − {SHORT[one.second]}", "", *_paired(one.paired), "")
        for one in matched.differences
    ]
    return ReportTable(
        name="matched",
        title="What the gain is made of",
        note=(
            f"n = {rows_of(evaluation)}. The same procedure fitted three value policies on the fit side, and "
            "all are in the lock: over memory-free samples of the first prompt, over the banks, and over "
            "both. Each asks exactly as many sources as there are samples, so all make the same number of "
            "calls (fewer only where a bank recalls nothing). The first three rows are differences from the "
            "model without memory, the others between two of the policies, paired by question. The last row "
            "shows what samples add to memory, the one before what memory adds to samples."
        ),
        head=("Policy", "Right [95%]", "Difference, points [95%]", "p", "Helps", "Hurts", "Calls"),
        rows=tuple(rows),
    )


def _arm_row(name: str, arm: Arm) -> tuple[str, ...]:
    return (name, share(arm.accuracy), *_paired(arm.paired), plain(arm.calls))


def _paired(paired: PairedChange) -> tuple[str, ...]:
    return (change(paired.delta), p_value(paired.p), str(paired.helps), str(paired.hurts))
