"""The figures of the report."""

from typing import TYPE_CHECKING

from heedful.evaluation.arm_results import BASELINE, HEEDFUL
from heedful.evaluation.components import SIGNAL
from heedful.evaluation.entry_effects import lopsided
from heedful.evaluation.evaluate import Evaluation
from heedful.report.main_table import rows_of
from heedful.report.phrases import called, percent, plain
from heedful.report.svg import BLUE, GREY, MARKERS, MEMORY_COLOURS, ORANGE, PURPLE, Figure, draw
from heedful.stats.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DRAWN = 14
"""Entries in the figure of helps and hurts."""


def arms_figure(evaluation: Evaluation) -> Figure:
    """Accuracy of every main arm with its interval."""
    arms, colours = evaluation.arms, _colours(evaluation)

    def paint(axes: "Axes") -> None:
        beside = axes.get_yaxis_transform()
        for place, arm in enumerate(reversed(arms)):
            _spread(axes, arm.accuracy, place, colours[arm.name])
            label = f"{percent(arm.accuracy.value)}\n{called(arm.calls)}"
            axes.text(1.02, place, label, transform=beside, va="center", fontsize=9)
        axes.axvline(100 * evaluation.baseline.accuracy.value, color=GREY, linestyle=":", linewidth=1)
        axes.set_yticks(range(len(arms)), [arm.name for arm in reversed(arms)])
        axes.set_ylim(-0.5, len(arms) - 0.5)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(f"right, % (95% intervals; n = {rows_of(evaluation)})")
        axes.set_title("How often each arm was right")

    values = "; ".join(f"{arm.name} {percent(arm.accuracy.value)}" for arm in arms)
    return draw(
        "arms",
        f"Share of right answers by arm with 95% intervals: {values}",
        "95% Wilson intervals; the dotted line is the baseline. The arms answer the same questions, so their "
        "differences are more certain than overlapping intervals suggest; the table has them paired.",
        0.9 + 0.42 * len(arms),
        paint,
    )


def _spread(axes: "Axes", interval: Interval, place: float, colour: str) -> None:
    axes.plot((100 * interval.low, 100 * interval.high), (place, place), color=colour, linewidth=2)
    axes.plot(100 * interval.value, place, "o", color=colour, markersize=6)


def _colours(evaluation: Evaluation) -> dict[str, str]:
    """The colour of each main arm."""
    kinds = {"always": ORANGE, "control": PURPLE, "unlimited": BLUE}
    others = {one.arm.name: kinds[one.kind] for one in evaluation.alternatives}
    return {BASELINE: GREY, HEEDFUL: BLUE, **others}


def bins_figure(evaluation: Evaluation) -> Figure | None:
    """Accuracy by confidence: the baseline and every bank."""
    bins = evaluation.bins
    if not bins:
        return None
    names = list(bins[0].right)
    looks = [(GREY, "o"), *zip(MEMORY_COLOURS, MARKERS, strict=True)]

    def paint(axes: "Axes") -> None:
        for at, name in enumerate(names):
            colour, marker = looks[at % len(looks)]
            found = [one.right[name] for one in bins]
            places = [place + 1 + 0.12 * (at - (len(names) - 1) / 2) for place in range(len(bins))]
            axes.vlines(
                places, [100 * i.low for i in found], [100 * i.high for i in found], colour, alpha=0.35
            )
            axes.plot(places, [100 * i.value for i in found], marker=marker, color=colour, label=name)
        axes.set_xticks(range(1, len(bins) + 1))
        axes.set_ylim(0, 100)
        sizes = sorted({one.right[BASELINE].n for one in bins})
        size = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        axes.set_xlabel(f"bin of first-pass confidence, 1 = least sure (n = {size} each)")
        axes.set_ylabel("right, %")
        axes.set_title("Accuracy by first-pass confidence")
        axes.legend(loc="lower right")

    return draw(
        "bins",
        f"Share of right answers in {len(bins)} bins of first-pass confidence for {', '.join(names)}; "
        "the numbers are in the table below",
        f"Ten equal-mass bins by the confidence ({SIGNAL}) of the pass without memory, 95% Wilson "
        "intervals. Routing pays off if a bank is above the baseline in the least sure bins.",
        3.4,
        paint,
    )


def coverage_figure(evaluation: Evaluation) -> Figure | None:
    """The baseline on its surest rows."""
    kept = evaluation.coverage
    if not kept:
        return None

    def paint(axes: "Axes") -> None:
        shares = [one.share for one in kept]
        low, high = ([100 * getattr(one.accuracy, end) for one in kept] for end in ("low", "high"))
        axes.fill_between(shares, low, high, color=GREY, alpha=0.15, linewidth=0)
        axes.plot(shares, [100 * one.accuracy.value for one in kept], "o-", color=GREY)
        axes.set_ylim(0, 100)
        axes.set_xlabel(f"share of surest rows kept, % (n = {kept[0].accuracy.n} to {kept[-1].accuracy.n})")
        axes.set_ylabel("right, %")
        axes.set_title("Does the model know what it knows?")

    return draw(
        "coverage",
        f"Accuracy of the model without memory on its surest rows: {percent(kept[0].accuracy.value)} on the "
        f"surest {kept[0].share}%, {percent(kept[-1].accuracy.value)} on all",
        f"Risk and coverage of the baseline by confidence ({SIGNAL}), 95% Wilson band. A falling line means "
        "that confidence separates right answers from wrong ones.",
        3.0,
        paint,
    )


def reliability_figure(evaluation: Evaluation) -> Figure | None:
    """Estimated chance against the share of right answers."""
    found = evaluation.reliability
    if not found:
        return None

    def paint(axes: "Axes") -> None:
        axes.plot((0, 100), (0, 100), color=GREY, linewidth=1, linestyle=":")
        for one, colour, marker in zip(found, (BLUE, *MEMORY_COLOURS), ("o", *MARKERS), strict=False):
            at = [100 * part.chance for part in one.bins]
            values = [100 * part.right.value for part in one.bins]
            spread = [
                [100 * max(0.0, part.right.value - part.right.low) for part in one.bins],
                [100 * max(0.0, part.right.high - part.right.value) for part in one.bins],
            ]
            axes.errorbar(at, values, yerr=spread, fmt=f"{marker}-", color=colour, label=one.family, lw=1)
        axes.set_xlim(0, 100)
        axes.set_ylim(0, 100)
        axes.set_xlabel("estimated chance of being right, %")
        axes.set_ylabel("right, %")
        axes.set_title("Are the estimated chances right?")
        axes.legend(loc="upper left")

    errors = ", ".join(f"{one.family} {plain(one.measured.ece, 3)}" for one in found)
    return draw(
        "reliability",
        f"Estimated chance of being right against the share of right answers; calibration error: {errors}",
        "All answers of the test side after every source was asked, in 10 bins of equal mass, with 95% "
        f"intervals. On the dotted line the estimates are right. Calibration error (ECE): {errors}.",
        3.4,
        paint,
    )


def thresholds_figure(evaluation: Evaluation) -> Figure | None:
    """The locked policy at other thresholds."""
    found = evaluation.thresholds
    if found is None:
        return None
    points = sorted(found.points, key=lambda point: point.percentile)
    chosen = found.chosen

    def paint(axes: "Axes") -> None:
        at = [point.percentile for point in points]
        low, high = ([100 * getattr(point.accuracy, end) for point in points] for end in ("low", "high"))
        axes.fill_between(at, low, high, color=BLUE, alpha=0.12, linewidth=0)
        axes.plot(at, [100 * p.accuracy.value for p in points], color=BLUE, label="test")
        axes.plot(at, [100 * p.fit_accuracy for p in points], "--", color=GREY, label="fit")
        axes.plot(
            chosen.percentile, 100 * chosen.accuracy.value, "*", color=BLUE, markersize=15, label="locked"
        )
        axes.axhline(100 * evaluation.baseline.accuracy.value, color=GREY, linestyle=":", linewidth=1)
        axes.set_xlabel(f"fit rows consulted, % (n = {found.fit_rows} fit, {evaluation.heedful.n} test)")
        axes.set_ylabel("right, %")
        axes.set_title("The locked policy at other thresholds")
        axes.legend(loc="best")

    return draw(
        "thresholds",
        f"Accuracy of the locked policy by threshold; the locked threshold consults {chosen.percentile:.0f}% "
        f"of fit rows and is right on {percent(chosen.accuracy.value)} of test rows",
        "Only the starred threshold was locked; the curve shows how much the result depends on it. Band: 95% "
        "Wilson interval on the test side; dotted line: the baseline on the test side.",
        3.2,
        paint,
    )


def entries_figure(evaluation: Evaluation) -> Figure | None:
    """The entries with the largest net effect: helps to the right, hurts to the left."""
    entries = lopsided(evaluation.entries, DRAWN)
    if not entries:
        return None

    def paint(axes: "Axes") -> None:
        places = range(len(entries) - 1, -1, -1)
        axes.barh(places, [one.helps for one in entries], color=BLUE, height=0.7, label="helps")
        axes.barh(places, [-one.hurts for one in entries], color=ORANGE, height=0.7, label="hurts")
        axes.axvline(0, color=GREY, linewidth=1)
        axes.set_yticks(places, [f"{one.bank} {one.entry} (n = {one.rows})" for one in entries], fontsize=8)
        axes.set_ylim(-0.6, len(entries) - 0.4)
        axes.grid(visible=False, axis="y")
        most = max(max(one.helps, one.hurts) for one in entries)
        step = max(1, most // 4)
        ticks = range(-(most // step) * step, most + 1, step)
        axes.set_xticks(ticks, [str(abs(tick)) for tick in ticks])
        axes.set_xlabel("questions: hurts to the left, helps to the right")
        axes.set_title("Helps and hurts by entry")
        axes.legend(loc="best")

    values = "; ".join(f"{one.bank} {one.entry} {one.helps} helps, {one.hurts} hurts" for one in entries)
    return draw(
        "entries",
        f"Helps and hurts of the entries with the largest net effect: {values}",
        f"The {len(entries)} entries of all banks with the largest |helps − hurts| on the test side with "
        "memory in every prompt; n: questions that recalled the entry. Entries recalled together share "
        "the outcome.",
        0.9 + 0.24 * len(entries),
        paint,
    )
