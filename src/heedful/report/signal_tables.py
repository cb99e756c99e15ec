"""The tables about confidence: signals, thresholds, calibration, separability."""

from heedful.evaluation.components import SIGNAL
from heedful.evaluation.diagnostics import Separability
from heedful.evaluation.evaluate import Evaluation
from heedful.evaluation.sweeps import ThresholdPoint
from heedful.report.main_table import rows_of
from heedful.report.phrases import change, figure, measured, p_value, percent, plain, share, signed
from heedful.report.report_table import ReportTable
from heedful.stats.intervals import Interval


def signals_table(evaluation: Evaluation) -> ReportTable:
    """The gate by each signal."""
    return ReportTable(
        name="signals",
        title="Signal sweep",
        note=(
            "For each signal, the gate (bank and percentile) that was right most often on the fit side "
            f"({evaluation.isolation.fit_rows} rows), evaluated on the test side. n = {rows_of(evaluation)}."
        ),
        head=(
            "Signal",
            "Bank",
            "Percentile",
            "Fit",
            "Test [95%]",
            "Consulted",
            "Against baseline, points [95%]",
            "p",
        ),
        rows=tuple(
            (
                one.signal,
                one.bank,
                f"p{one.percentile}",
                percent(one.fit_accuracy),
                share(one.arm.accuracy),
                percent(one.arm.consulted),
                change(one.arm.paired.delta),
                p_value(one.arm.paired.p),
            )
            for one in evaluation.signals
        ),
        words=frozenset({1}),
        empty="not recorded: no signal was measured with a bank on both sides",
    )


def thresholds_table(evaluation: Evaluation) -> ReportTable:
    """The locked policy at other thresholds."""
    sweep = evaluation.thresholds
    points = [] if sweep is None else [("chosen", sweep.chosen), *(("", point) for point in sweep.points)]
    rows = 0 if sweep is None else sweep.fit_rows
    return ReportTable(
        name="thresholds",
        folded=True,
        title="The locked policy at other thresholds",
        note=(
            f"Everything except the threshold is as locked; percentiles are over {rows} fit rows. Test n = "
            f"{rows_of(evaluation)}. Only the chosen row was locked; the others are descriptive."
        ),
        head=("", "Threshold", "Fit rows consulted", "Fit", "Test [95%]", "Calls"),
        rows=tuple((mark, *_threshold(point)) for mark, point in points),
        marked=frozenset({0}),
        empty="the locked policy has no threshold to vary",
    )


def _threshold(point: ThresholdPoint) -> tuple[str, ...]:
    return (
        figure(point.threshold),
        f"{point.percentile:.0f}%",
        percent(point.fit_accuracy),
        share(point.accuracy),
        plain(point.calls),
    )


def calibration_table(evaluation: Evaluation) -> ReportTable:
    """Raw and Platt-scaled confidence."""
    rows = []
    for one in evaluation.calibration:
        for kind, scaled in (("raw", one.raw), ("Platt", one.platt)):
            found = scaled.measured
            cells = (str(found.n), plain(found.ece, 4), measured(scaled.brier, 4), measured(scaled.nll, 4))
            rows.append((one.source, kind, *cells))
    fitted = ", ".join(f"{one.source} {one.fit_rows}" for one in evaluation.calibration)
    return ReportTable(
        name="calibration",
        title="Calibration",
        note=(
            "Raw confidence is exp(mean log-prob); Platt scaling was fitted on the fit side "
            f"(rows: {fitted or 'none'}) and evaluated on the test side. ECE uses 10 equal-mass bins "
            "and has no interval; lower is better in every column."
        ),
        head=("Pass", "Confidence", "n", "ECE", "Brier [95%]", "NLL [95%]"),
        rows=tuple(rows),
        words=frozenset({1}),
        empty=f"not recorded: no pass has the signal {SIGNAL} on both sides",
    )


def separability_table(evaluation: Evaluation) -> ReportTable:
    """Whether confidence ranks helps above hurts, and how many of each a bank has."""
    return ReportTable(
        name="separability",
        title="Separability and bank asymmetry",
        note=(
            "Among rows where exactly one of baseline and bank is right: the probability that a help has a "
            "higher value than a hurt (AUC; 0.5 is chance) for the second pass's confidence c′ and for its "
            "gain c′ − c over the first. n = helps + hurts"
            f"{', of the first seed only' if len(evaluation.lock.seeds) > 1 else ''}."
        ),
        head=("Bank", "Signal", "Rows", "Helps", "Hurts", "HH", "AUC of c′ [95%]", "AUC of c′ − c [95%]"),
        rows=tuple(_separability(one) for one in evaluation.separability),
        words=frozenset({1, 2}),
        empty="not recorded: no bank with a measured confidence",
    )


def _separability(one: Separability) -> tuple[str, ...]:
    def auc(found: Interval | None) -> str:
        return "too few" if found is None else measured(found)

    counts = (str(one.helps), str(one.hurts), signed(one.helps - one.hurts))
    return (one.bank, one.signal, one.scope, *counts, auc(one.second), auc(one.gain))
