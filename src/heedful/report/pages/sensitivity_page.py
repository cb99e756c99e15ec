"""The page about sensitivity: how results depend on a bank's size, noise and cost."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from heedful.experiments.arm_measures import ArmMeasure
from heedful.experiments.sensitivity import SensitivityPoint
from heedful.report.pages.experiment_page import ExperimentPage, arm_fields, caveats
from heedful.report.phrases import change, plain, points, share
from heedful.report.report_table import ReportTable
from heedful.report.svg import BLUE, GREEN, GREY, ORANGE, Figure, draw
from heedful.types import Side

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"always": ORANGE, "heedful": BLUE, "value": GREEN}
AXES = {
    "size": "share of the bank's entries, %",
    "noise": "share of bad entries, %",
    "construction": "model calls to build the bank",
}


def sensitivity_page(
    study: str, source: str, side: Side, found: Sequence[SensitivityPoint]
) -> ExperimentPage:
    n = next(iter(found[0].arms.values())).counts.n
    return ExperimentPage(
        title=f"{study}: how results depend on {source}",
        sentences=(
            f"{n} rows of the {side} side; {sum(one.changed for one in found)} changed passes. Policies were "
            "chosen on the fit side with the original bank.",
            *caveats(source, side, {arm: one.policy for arm, one in found[0].arms.items()}),
        ),
        tables=(_table(found),),
        figures=tuple(
            drawn for axis in AXES for drawn in _curves(axis, [one for one in found if one.axis == axis])
        ),
        summary={"points": [_point(one) for one in found]},
    )


def _table(found: Sequence[SensitivityPoint]) -> ReportTable:
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
                )
            )
    return ReportTable(
        name="sensitivity",
        title="Every point",
        note="Right with a 95% Wilson interval; helps and hurts relative to the answer without memory; the "
        "difference from the original bank in percentage points, with a 95% bootstrap interval over tasks. "
        "Construction: model calls to build the bank.",
        head=(
            *("Bank, arm", "Entries", "Right [95%]", "Against no memory", "Against the original bank [95%]"),
            *("Helps", "Hurts", "Calls", "Tokens"),
        ),
        rows=tuple(rows),
    )


def _curves(axis: str, found: Sequence[SensitivityPoint]) -> list[Figure]:
    if not found:
        return []
    base = 100 * found[0].arms["always"].counts.base
    return [
        _curve("accuracy", axis, found, lambda arm: 100 * arm.right.value, "right, %", base),
        _curve("harm", axis, found, lambda arm: 100 * arm.hurt.value, "answers hurt, %"),
        _curve("cost", axis, found, lambda arm: arm.tokens, "tokens per task"),
    ]


def _curve(
    what: str,
    axis: str,
    found: Sequence[SensitivityPoint],
    of: Callable[[ArmMeasure], float],
    label: str,
    base: float | None = None,
) -> Figure:
    places = [one.value if axis == "construction" else 100 * one.value for one in found]

    def paint(axes: "Axes") -> None:
        for arm in found[0].arms:
            axes.plot(places, [of(one.arms[arm]) for one in found], "o-", color=COLOURS[arm], label=arm)
        if base is None:
            axes.set_ylim(bottom=0)
        else:
            axes.axhline(base, color=GREY, linestyle=":", linewidth=1, label="no memory")
        axes.set_xlabel(AXES[axis])
        axes.set_ylabel(label)
        axes.set_title(f"{what.capitalize()} by {axis}")
        axes.legend(loc="best")

    return draw(f"{what}-{axis}", f"{what.capitalize()} by {axis}", "", 2.6, paint)


def _point(one: SensitivityPoint) -> dict[str, Any]:
    return {
        "axis": one.axis,
        "value": one.value,
        "entries": one.entries,
        "changed": one.changed,
        "arms": {arm: arm_fields(measured) for arm, measured in one.arms.items()},
    }
