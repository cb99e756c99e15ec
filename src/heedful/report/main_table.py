"""The main table: every main arm, then the oracles."""

from heedful.evaluation.arm_results import HEEDFUL, Arm
from heedful.evaluation.evaluate import Evaluation
from heedful.report.phrases import change, listed, p_value, percent, plain, promise_name, share
from heedful.report.report_table import ReportTable

MAIN_HEAD = (
    "Arm",
    "Right [95%]",
    "Against baseline, points [95%]",
    "p",
    "Helps",
    "Hurts",
    "Calls",
    "Tokens",
    "Seconds",
)


def rows_of(evaluation: Evaluation) -> str:
    """`300 questions`, or with seeds `900 rows (300 questions × 3 seeds)`."""
    rows, tasks = evaluation.heedful.n, evaluation.tasks
    return (
        f"{tasks} questions" if rows == tasks else f"{rows} rows ({tasks} questions × {rows // tasks} seeds)"
    )


def main_table(evaluation: Evaluation) -> ReportTable:
    """Every main arm, then the oracles."""
    oracle = evaluation.oracle
    blank = ("",) * (len(MAIN_HEAD) - 2)
    rows = [_arm_row(arm, arm.name == "baseline") for arm in evaluation.arms]
    bounds = {
        "oracle of the policy": oracle.routed,
        "oracle of the banks that a policy could ask": oracle.all_banks,
    }
    rows += [(name, share(bound), *blank) for name, bound in bounds.items()]
    closed = (
        ""
        if oracle.gap_close is None
        else f" heedful closes {percent(oracle.gap_close)} of the gap from the baseline to its oracle."
    )
    absent = f" Not recorded on the test side: {', '.join(evaluation.missing)}." if evaluation.missing else ""
    seeds = (
        " Helps and hurts count rows; intervals and p count the rows of a question under several seeds as "
        "one."
        if evaluation.tasks < evaluation.heedful.n
        else ""
    )
    repeats = (
        f" Intervals and p count {evaluation.clusters} different questions: repeated questions and "
        "near-duplicates count as one."
        if evaluation.clusters < evaluation.tasks
        else ""
    )
    return ReportTable(
        name="main",
        title="All arms on the test side",
        note=(
            f"n = {rows_of(evaluation)}, the same for every arm; calls, tokens and seconds are per question. "
            "Seconds were measured with several passes running at once and depend on the machine's load; "
            "tokens compare better. "
            f"{_legend(evaluation)} "
            "Helps: wrong without memory, right with the arm. Hurts: the reverse. p: exact McNemar test. "
            "An oracle picks a right answer wherever one was available; it is a bound, not a policy."
            f"{closed}{absent}{seeds}{repeats}"
        ),
        head=MAIN_HEAD,
        rows=tuple(rows),
        marked=frozenset(at for at, row in enumerate(rows) if row[0] == HEEDFUL),
    )


def _legend(evaluation: Evaluation) -> str:
    """What the names of the arms mean."""
    others = [one.arm for one in reversed(evaluation.alternatives) if one.kind == "control"]
    majorities = tuple(arm.name for arm in others if arm.policy.combine == "agree")
    votes = tuple(arm.name for arm in others if arm.policy.first != "none")
    controls = tuple(arm.name for arm in others if arm.name not in (*majorities, *votes))
    kinds = {one.kind for one in evaluation.alternatives}
    meanings = ["baseline: the model without memory"]
    if controls:
        meanings.append(
            f"{listed(controls)}: the first pass, then a second pass without memory that is always accepted"
        )
    if votes:
        meanings.append(f"{listed(votes)}: the most frequent answer of several samples without memory")
    if majorities:
        meanings.append(
            f"{listed(majorities)}: the majority of the first pass and two samples without memory, the first "
            "pass if all differ; the second sample is asked only if the first one differs"
        )
    if "always" in kinds:
        meanings.append("always-…: that bank in every prompt, one pass")
    if "unlimited" in kinds:
        promise = promise_name(evaluation.lock.fit.certificate)
        meanings.append(f"unlimited: the policy chosen without the {promise}, also locked")
    return "; ".join([*meanings, "heedful: the locked policy."])


def _arm_row(arm: Arm, is_baseline: bool) -> tuple[str, ...]:
    paired = arm.paired
    against = (
        ("", "", "", "")
        if is_baseline
        else (change(paired.delta), p_value(paired.p), str(paired.helps), str(paired.hurts))
    )
    spent = (plain(arm.calls), plain(arm.tokens, 0), plain(arm.seconds))
    return (arm.name, share(arm.accuracy), *against, *spent)
