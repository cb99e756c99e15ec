"""How results hang on a bank's size, noise and cost, as a page with curves."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from heedful.experiments.sensitivity import Point
from heedful.report.analysis import Analysis, arm_fields
from heedful.report.drawing import BLUE, GREY, ORANGE, Drawing, draw
from heedful.report.sheet import Sheet
from heedful.report.wording import change, plain, points, share
from heedful.types import Side

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"always": ORANGE, "heedful": BLUE}
AXES = {"size": "share of the bank's entries", "noise": "share of bad entries"}


def sensitivity_analysis(study: str, source: str, side: Side, found: Sequence[Point]) -> Analysis:
    n = next(iter(found[0].arms.values())).counts.n
    return Analysis(
        title=f"{study}: how results hang on {source}",
        sentences=(
            f"{n} rows of the {side} side; {sum(one.changed for one in found)} changed passes. Policies were "
            "chosen on the fit side with the bank as it is.",
        ),
        sheets=(_table(found),),
        drawings=tuple(
            drawn for axis in AXES for drawn in _curves(axis, [one for one in found if one.axis == axis])
        ),
        summary={"points": [_point(one) for one in found]},
    )


def _table(found: Sequence[Point]) -> Sheet:
    rows = []
    for one in found:
        for arm, measured in one.arms.items():
            counts = measured.counts
            rows.append(
                (
                    f"{one.axis} {one.value:g}, {arm}",
                    str(one.entries),
                    share(measured.right),
                    points(counts.delta),
                    change(measured.change),
                    str(counts.helps),
                    str(counts.hurts),
                    plain(measured.calls),
                    plain(measured.tokens, 0),
                    "" if one.construction is None else plain(one.construction, 0),
                )
            )
    return Sheet(
        name="sensitivity",
        title="Every point",
        note="Right with a 95% Wilson interval; helps and hurts against the answer without memory; the "
        "difference to the bank as it is, in percentage points, with a 95% bootstrap interval over tasks. "
        "Built: model calls that building so many entries took.",
        head=(
            *("Bank, arm", "Entries", "Right [95%]", "Against no memory", "Against the whole bank [95%]"),
            *("Helps", "Hurts", "Calls", "Tokens", "Built, calls"),
        ),
        rows=tuple(rows),
    )


def _curves(axis: str, found: Sequence[Point]) -> list[Drawing]:
    if not found:
        return []
    places = [100 * one.value for one in found]
    base = 100 * found[0].arms["always"].counts.base

    def accuracy(axes: "Axes") -> None:
        for arm, colour in COLOURS.items():
            shares = [100 * one.arms[arm].right.value for one in found]
            axes.plot(places, shares, "o-", color=colour, label=arm)
        axes.axhline(base, color=GREY, linestyle=":", linewidth=1, label="no memory")
        _finish(axes, axis, "right, %", f"Accuracy against {axis}")

    def harm(axes: "Axes") -> None:
        for arm, colour in COLOURS.items():
            shares = [100 * one.arms[arm].hurt.value for one in found]
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


def _point(one: Point) -> dict[str, Any]:
    return {
        "axis": one.axis,
        "value": one.value,
        "entries": one.entries,
        "construction": one.construction,
        "changed": one.changed,
        "arms": {arm: arm_fields(measured) for arm, measured in one.arms.items()},
    }
