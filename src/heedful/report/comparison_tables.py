"""The tables that compare arms: alternatives, components, significance."""

from heedful.evaluation.arm_results import HEEDFUL, UNLIMITED, Arm
from heedful.evaluation.components import PERCENTILE, SIGNAL
from heedful.evaluation.evaluate import Evaluation
from heedful.report.main_table import rows_of
from heedful.report.phrases import (
    called,
    change,
    figure,
    listed,
    p_value,
    percent,
    plain,
    promise_name,
    share,
    signed,
)
from heedful.report.report_table import ReportTable
from heedful.types import Policy


def alternatives_table(evaluation: Evaluation) -> ReportTable:
    """heedful compared with every control and with every bank in every prompt."""
    mine = evaluation.heedful
    kinds = {
        "always": "always-retrieve",
        "control": "no memory",
        "unlimited": f"policy without the {promise_name(evaluation.lock.fit.certificate)}",
    }
    return ReportTable(
        name="alternatives",
        title="Stronger alternatives",
        note=(
            f"heedful ({share(mine.accuracy)} at {called(mine.calls)}) compared with each alternative on the "
            f"same {rows_of(evaluation)}; positive differences favour heedful. Sorted by accuracy on the "
            "test side, which favours the alternative at the top."
        ),
        head=(
            "Alternative",
            "Kind",
            "Right [95%]",
            "Calls",
            "heedful − alternative, points [95%]",
            "p",
            "Better",
            "Worse",
        ),
        rows=tuple(
            (
                one.arm.name,
                kinds[one.kind],
                share(one.arm.accuracy),
                plain(one.arm.calls),
                change(one.paired.delta),
                p_value(one.paired.p),
                str(one.paired.helps),
                str(one.paired.hurts),
            )
            for one in evaluation.alternatives
        ),
        words=frozenset({1}),
    )


def components_table(evaluation: Evaluation) -> ReportTable:
    """Each stack of stages at the frozen threshold."""
    isolation = evaluation.isolation
    at = "" if isolation.threshold is None else f" = {figure(isolation.threshold)}"
    return ReportTable(
        name="components",
        title="Component isolation",
        note=(
            f"Every policy consults memory below the same frozen threshold, p{PERCENTILE} of the first-pass "
            f"confidence ({SIGNAL}) on the fit side{at}; margins were tuned on the {isolation.fit_rows} fit "
            f"rows at that threshold. n = {rows_of(evaluation)}."
        ),
        head=(
            "Policy",
            "Margins",
            "Fit",
            "Right [95%]",
            "Against baseline, points [95%]",
            "p",
            "Helps",
            "Hurts",
            "Consulted",
            "Calls",
        ),
        rows=tuple(
            (
                one.arm.name,
                _margins(one.arm.policy),
                percent(one.fit_accuracy),
                share(one.arm.accuracy),
                change(one.arm.paired.delta),
                p_value(one.arm.paired.p),
                str(one.arm.paired.helps),
                str(one.arm.paired.hurts),
                percent(one.arm.consulted),
                plain(one.arm.calls),
            )
            for one in isolation.components
        ),
        words=frozenset({1}),
        empty=f"not recorded: this table needs a bank on both sides and the signal {SIGNAL}",
    )


def _margins(policy: Policy) -> str:
    if policy.margins is None:
        return "–"
    return ", ".join(figure(policy.margins[source]) for source in policy.sources)


def stages_table(evaluation: Evaluation) -> ReportTable:
    """What each stage adds to the previous one."""
    return ReportTable(
        name="stages",
        title="What each stage adds",
        note=(
            "For each stage, the policy that was best on the fit side, compared with that of the previous "
            "stage. "
            f"n = {rows_of(evaluation)}."
        ),
        head=("Stage", "Policy", "Right [95%]", "Against", "Difference, points [95%]", "p"),
        rows=tuple(
            (
                stage.name,
                stage.arm.name,
                share(stage.arm.accuracy),
                stage.before,
                change(stage.paired.delta),
                p_value(stage.paired.p),
            )
            for stage in evaluation.isolation.stages
        ),
        words=frozenset({1, 3}),
    )


def significance_table(evaluation: Evaluation) -> ReportTable:
    """Every arm compared with the baseline."""
    arms = [arm for arm in evaluation.every_arm if arm is not evaluation.baseline]
    fixed = tuple(arm.name for arm in arms if arm.name in (HEEDFUL, UNLIMITED))
    return ReportTable(
        name="significance",
        title="Significance ledger",
        note=(
            f"Every arm compared with the baseline, n = {rows_of(evaluation)}: paired difference with its "
            "bootstrap interval over questions, exact two-sided McNemar p, HH = helps − hurts. Only "
            f"{listed(fixed)} {'was' if len(fixed) == 1 else 'were'} locked beforehand; the p-values of the "
            f"other {len(arms) - len(fixed)} arms are not corrected for multiple comparisons."
        ),
        head=("Comparison", "Difference, points", "Low", "High", "p", "HH", "Helps", "Hurts"),
        rows=tuple(_significance_row(arm) for arm in arms),
        marked=frozenset(at for at, arm in enumerate(arms) if arm.name == HEEDFUL),
    )


def _significance_row(arm: Arm) -> tuple[str, ...]:
    paired, delta = arm.paired, arm.paired.delta
    limits = tuple(signed(100 * value, 1) for value in (delta.value, delta.low, delta.high))
    counts = (signed(paired.helps - paired.hurts), str(paired.helps), str(paired.hurts))
    return (f"{arm.name} vs baseline", *limits, p_value(paired.p), *counts)
