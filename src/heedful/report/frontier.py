"""Accuracy against cost: the frontier of value policies, and what a user would do instead."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from heedful.evaluation.arm_results import BASELINE, HEEDFUL, Arm
from heedful.evaluation.evaluate import Evaluation
from heedful.report.main_table import rows_of
from heedful.report.phrases import change, percent, plain, share
from heedful.report.report_table import ReportTable
from heedful.report.svg import BLUE, GREEN, GREY, ORANGE, PURPLE, Figure, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINES = {"value": (BLUE, "o-"), "prior": (GREEN, "s--")}
UNITS: dict[str, Callable[[Arm], float]] = {"calls": lambda arm: arm.calls, "tokens": lambda arm: arm.tokens}


def frontier_figure(evaluation: Evaluation, unit: str) -> Figure | None:
    """Accuracy against calls or tokens per question."""
    points, cost = evaluation.frontier, UNITS[unit]
    if not points:
        return None
    looks = _looks(evaluation)

    def paint(axes: "Axes") -> None:
        for family in dict.fromkeys(point.family for point in points):
            colour, line = LINES[family]
            drawn = [point.arm for point in points if point.family == family]
            axes.plot(
                [cost(arm) for arm in drawn],
                [100 * arm.accuracy.value for arm in drawn],
                line,
                color=colour,
                label=f"{family} policy, λ from 0 to {points[-1].price:g}",
                markersize=4,
            )
        for arm in evaluation.arms:
            colour, marker = looks[arm.name]
            at = cost(arm), 100 * arm.accuracy.value
            axes.plot(*at, marker, color=colour, markersize=7)
            axes.annotate(arm.name, at, xytext=(4, 4), textcoords="offset points", fontsize=7, color=colour)
        axes.set_xlabel(f"{unit} per question (n = {rows_of(evaluation)})")
        axes.set_ylabel("right, %")
        axes.set_title(f"Accuracy against {unit}")
        axes.legend(loc="best")

    best = max(points, key=lambda point: point.arm.accuracy.value).arm
    return draw(
        f"frontier-{unit}",
        f"Accuracy against {unit} per question; the best value policy is right on "
        f"{percent(best.accuracy.value)} at {plain(cost(best))} {unit}, no memory on "
        f"{percent(evaluation.baseline.accuracy.value)} at {plain(cost(evaluation.baseline))}",
        "The lines are the value policies of the lock at other prices of a call; the points are the other "
        "arms: memory in every prompt (orange), controls without memory (purple) and the locked policy. "
        "Only the locked policy was fixed beforehand.",
        3.8,
        paint,
    )


def _looks(evaluation: Evaluation) -> dict[str, tuple[str, str]]:
    kinds = {"always": (ORANGE, "D"), "control": (PURPLE, "^"), "unlimited": (BLUE, "P")}
    others = {one.arm.name: kinds[one.kind] for one in evaluation.alternatives}
    return {BASELINE: (GREY, "o"), HEEDFUL: (BLUE, "*"), **others}


def frontier_table(evaluation: Evaluation) -> ReportTable | None:
    """The numbers behind the lines."""
    if not evaluation.frontier:
        return None
    return ReportTable(
        name="frontier",
        title="Value policies by the price of a call",
        note=(
            f"n = {rows_of(evaluation)}. λ: what one more call, or 1,000 tokens, must gain in accuracy. The "
            "estimators are those of the lock; only λ differs."
        ),
        head=("Policy", "λ", "Right [95%]", "Against baseline, points [95%]", "Calls", "Tokens"),
        rows=tuple(
            (
                point.family,
                f"{point.price:g}",
                share(point.arm.accuracy),
                change(point.arm.paired.delta),
                plain(point.arm.calls),
                plain(point.arm.tokens, 0),
            )
            for point in evaluation.frontier
        ),
        folded=True,
    )
