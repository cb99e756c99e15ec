"""The table of the cross-fitted evaluation, beside the locked test."""

from heedful.evaluation.evaluate import Evaluation
from heedful.protocol.crossfit import PROCEDURE, UNLIMITED, CrossfitArm
from heedful.protocol.crossfit_file import Crossfit
from heedful.protocol.fit_result import PRIOR, THRESHOLD, VALUE
from heedful.protocol.matched import BOTH, COMPUTE, MEMORY
from heedful.report.phrases import change, p_value, percent, plain
from heedful.report.report_table import ReportTable

NAMES = {
    PROCEDURE: "cross-fitted: the study's procedure",
    UNLIMITED: "cross-fitted: without the harm limit or promise",
    THRESHOLD: "cross-fitted: best threshold policy",
    VALUE: "cross-fitted: value policy",
    PRIOR: "cross-fitted: prior only",
    COMPUTE: "cross-fitted, equal calls: value of samples without memory",
    MEMORY: "cross-fitted, equal calls: value of memory",
    BOTH: "cross-fitted, equal calls: value of both",
}


def crossfit_table(evaluation: Evaluation) -> ReportTable | None:
    """The locked policy on the test side, and the procedure on all rows; None if it was not cross-fitted."""
    if evaluation.crossfit is None:
        return None
    mine = evaluation.heedful
    locked = CrossfitArm(
        n=mine.n,
        accuracy=mine.accuracy.value,
        delta=mine.paired.delta,
        p=mine.paired.p,
        helps=mine.paired.helps,
        hurts=mine.paired.hurts,
        calls=mine.calls,
    )
    return folds_table(evaluation.crossfit, {"the locked policy on the test side": locked})


def folds_table(crossfit: Crossfit, locked: dict[str, CrossfitArm]) -> ReportTable:
    """One row per way of choosing, after the rows of the locked test."""
    folded = {PROCEDURE: crossfit.procedure, **crossfit.families}
    arms = {**locked, **{NAMES[name]: arm for name, arm in folded.items()}}
    fit, test = crossfit.rows["fit"], crossfit.rows["test"]
    return ReportTable(
        name="crossfit",
        title="Cross-fitted evaluation",
        note=(
            f"The procedure that chooses a policy, repeated over {crossfit.folds} folds of all recorded rows "
            f"({fit} fit, {test} test, {crossfit.clusters} different questions): each row is judged by a "
            "policy fitted on the other folds, which contain neither the row nor a near-duplicate. It "
            "measures the procedure, not the locked policy, and was computed after the test side was "
            "opened; the locked test stays the result. Differences are against the model without memory. "
            "The policies of the folds share most of their training rows, and the intervals (bootstrap "
            "over clusters of questions) treat these policies as fixed, so the true uncertainty is larger."
            f"{_differences(crossfit)}"
        ),
        head=("Evaluation", "n", "Right", "Against baseline, points [95%]", "p", "Helps", "Hurts", "Calls"),
        rows=tuple(_row(name, arm) for name, arm in arms.items()),
        marked=frozenset(range(len(locked))),
    )


def _differences(crossfit: Crossfit) -> str:
    """Memory against compute, in a sentence; nothing without samples."""
    found = crossfit.differences
    if not found:
        return ""
    words = ", ".join(f"{name.replace('-', ' − ')} {change(delta)}" for name, delta in found.items())
    return f" At equal calls, paired differences in points: {words}."


def _row(name: str, arm: CrossfitArm) -> tuple[str, ...]:
    numbers = (percent(arm.accuracy), change(arm.delta), p_value(arm.p), str(arm.helps), str(arm.hurts))
    return (name, str(arm.n), *numbers, plain(arm.calls))
