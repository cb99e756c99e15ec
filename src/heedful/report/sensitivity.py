"""How results hang on a bank's size, noise and cost, as a page with curves."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from heedful.experiments.sensitivity import Point
from heedful.report.analysis import Analysis
from heedful.report.drawing import BLUE, GREY, ORANGE, Drawing, draw
from heedful.report.sheet import Sheet
from heedful.report.wording import percent, plain, points
from heedful.stats.intervals import wilson
from heedful.types import Side

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"always": ORANGE, "heedful": BLUE}
AXES = {"size": "share of the bank's entries", "noise": "share of bad entries"}


def sensitivity_analysis(study: str, source: str, side: Side, found: Sequence[Point]) -> Analysis:
    n = next(iter(found[0].counts.values())).n
    return Analysis(
        name="sensitivity",
        title=f"{study}: how results hang on {source}",
        sentences=(
            f"{n} rows of the {side} side; {sum(one.recorded for one in found)} model calls. Policies were "
            "chosen on the fit side with the bank as it is.",
        ),
        sheets=(_table(found),),
        drawings=tuple(
            drawn for axis in AXES for drawn in _curves(axis, [one for one in found if one.axis == axis])
        ),
        summary=_summary(source, side, found),
    )


def _table(found: Sequence[Point]) -> Sheet:
    rows = []
    for one in found:
        for arm, counts in one.counts.items():
            low, high = wilson(round(counts.accuracy * counts.n), counts.n)
            rows.append(
                (
                    f"{one.axis} {one.value:g}, {arm}",
                    str(one.entries),
                    f"{percent(counts.accuracy)} [{100 * low:.1f}, {100 * high:.1f}]",
                    points(counts.delta),
                    str(counts.helps),
                    str(counts.hurts),
                    plain(one.calls[arm]),
                    plain(one.tokens[arm], 0),
                    "" if one.construction is None else plain(one.construction, 0),
                )
            )
    return Sheet(
        name="sensitivity",
        title="Every point",
        note="Right with a 95% Wilson interval; helps and hurts against the answer without memory. Built: "
        "model calls that building so many entries took.",
        head=(
            *("Bank, arm", "Entries", "Right [95%]", "Against no memory"),
            *("Helps", "Hurts", "Calls", "Tokens", "Built, calls"),
        ),
        rows=tuple(rows),
    )


def _curves(axis: str, found: Sequence[Point]) -> list[Drawing]:
    if not found:
        return []
    places = [100 * one.value for one in found]
    base = 100 * found[0].counts["always"].base

    def accuracy(axes: "Axes") -> None:
        for arm, colour in COLOURS.items():
            shares = [100 * one.counts[arm].accuracy for one in found]
            axes.plot(places, shares, "o-", color=colour, label=arm)
        axes.axhline(base, color=GREY, linestyle=":", linewidth=1, label="no memory")
        _finish(axes, axis, "right, %", f"Accuracy against {axis}")

    def harm(axes: "Axes") -> None:
        for arm, colour in COLOURS.items():
            shares = [100 * one.counts[arm].hurts / one.counts[arm].n for one in found]
            axes.plot(places, shares, "o-", color=colour, label=arm)
        axes.set_ylim(bottom=0)
        _finish(axes, axis, "answers spoiled, %", f"Harm against {axis}")

    return [
        draw(f"accuracy-{axis}", f"Accuracy by {AXES[axis]}", "", 2.6, accuracy),
        draw(f"harm-{axis}", f"Harm by {AXES[axis]}", "", 2.6, harm),
    ]


def _finish(axes: "Axes", axis: str, label: str, title: str) -> None:
    axes.set_xlabel(f"{AXES[axis]}, %")
    axes.set_ylabel(label)
    axes.set_title(title)
    axes.legend(loc="best")


def _summary(source: str, side: Side, found: Sequence[Point]) -> dict[str, Any]:
    return {
        "source": source,
        "side": side,
        "points": [
            {
                "axis": one.axis,
                "value": one.value,
                "entries": one.entries,
                "construction": one.construction,
                "recorded": one.recorded,
                "arms": {
                    arm: {
                        "n": counts.n,
                        "accuracy": counts.accuracy,
                        "helps": counts.helps,
                        "hurts": counts.hurts,
                        "calls_per_task": one.calls[arm],
                        "tokens_per_task": one.tokens[arm],
                    }
                    for arm, counts in one.counts.items()
                },
            }
            for one in found
        ],
    }
