"""The tables about harm and about families of policies."""

from heedful.evaluation.evaluate import Evaluation
from heedful.evaluation.families import FamilyResult
from heedful.evaluation.harm import HarmBound
from heedful.report.main_table import rows_of
from heedful.report.phrases import change, p_value, percent, plain, promise_name, share
from heedful.report.report_table import ReportTable


def harm_table(evaluation: Evaluation) -> ReportTable:
    """The harm of every arm against the shared first pass and against an independent decode."""
    harm = evaluation.harm
    again = (
        "No independent decode was recorded (a source of kind retry at temperature 0 on the test side)."
        if harm.reference is None
        else f"Independent decode: the control {harm.reference}, the first prompt decoded once more, which "
        "charges the noise to every arm alike; the row of the baseline shows this noise alone."
    )
    return ReportTable(
        name="harm",
        title="Harm on the test side",
        note=(
            f"n = {harm.heedful.shared.tasks} questions. Hurts: right in the reference, wrong with the arm. "
            "At most: the exact upper bound of the share of such questions (Clopper and Pearson, one-sided "
            "95%), for each policy that was fixed before the test side was opened. First pass: the recorded "
            "one without memory; a policy that starts with it reuses it when it rolls back, while memory in "
            "the first prompt and the controls are decoded anew, so the noise of decoding counts against "
            f"them only. {again}"
        ),
        head=("Arm", "Hurts, first pass", "At most", "Hurts, independent decode", "At most"),
        rows=tuple((one.arm, *_bound(one.shared), *_bound(one.independent)) for one in harm.arms),
        marked=frozenset(at for at, one in enumerate(harm.arms) if one is harm.heedful),
    )


def _bound(bound: HarmBound | None) -> tuple[str, str]:
    return ("", "") if bound is None else (f"{bound.hurts} of {bound.tasks}", percent(bound.upper))


def families_table(evaluation: Evaluation) -> ReportTable:
    """The best threshold policy and the value policy, side by side."""
    promise = promise_name(evaluation.lock.fit.certificate)
    return ReportTable(
        name="families",
        title="Families",
        note=(
            f"n = {rows_of(evaluation)}; every policy here was chosen on the fit side and is in the lock. "
            "threshold: the best policy of the paper's kind, with thresholds and margins on confidence. "
            "value: a policy with a fitted estimate of what each answer and each further pass is worth. "
            f"-certified: the best of its family under the {promise} of the study; without that ending: "
            "chosen without it. The locked policy, the arm heedful, is highlighted. A family that is "
            "missing was not fitted when the study was locked."
        ),
        head=(
            "Family",
            "Kind",
            "Right [95%]",
            "Against baseline, points [95%]",
            "p",
            "Helps",
            "Hurts",
            "Hurts at most",
            "Calls",
            "Certified",
            "Held out",
        ),
        rows=tuple(map(_family_row, evaluation.families)),
        marked=frozenset(at for at, family in enumerate(evaluation.families) if family.locked),
        words=frozenset({1}),
    )


def _family_row(family: FamilyResult) -> tuple[str, ...]:
    paired = family.arm.paired
    return (
        family.name,
        family.kind,
        share(family.arm.accuracy),
        change(paired.delta),
        p_value(paired.p),
        str(paired.helps),
        str(paired.hurts),
        percent(family.harm.upper),
        plain(family.arm.calls),
        _certified(family),
        "" if family.held_out is None else percent(family.held_out),
    )


def _certified(family: FamilyResult) -> str:
    if family.certified_limit is not None:
        return f"at most {percent(family.certified_limit)}"
    return "no" if family.certified is None else "no loss"
