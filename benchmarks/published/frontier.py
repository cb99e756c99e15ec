"""Accuracy against calls, and against tokens, on the three arithmetic benchmarks."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from heedful.report.svg import BLUE, GREEN, GREY, ORANGE, PURPLE
from published.cells import (
    BENCHMARKS,
    RESULTS,
    Fields,
    best_always,
    calls_of,
    family_arm,
    known_report,
    newest_study,
)
from published.drawing import PublishedFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Point = tuple[str, float, float]
"""A label, the cost per question, and the share of right answers in percent."""
Numbers = Mapping[str, Mapping[str, Sequence[Point]]]
"""Everything that is drawn, by benchmark: the lines, and the points."""
LINES = {
    "value": (BLUE, "o-", "value policy, by the price of a call"),
    "prior": (GREEN, "s--", "its prior alone"),
}
MARKS = {
    "no memory": (GREY, "o"),
    "memory always": (ORANGE, "D"),
    "retry": (PURPLE, "v"),
    "vote": (PURPLE, "^"),
    "threshold policy": (ORANGE, "X"),
    "certified 2%": (BLUE, "*"),
}


def frontier_figures() -> list[PublishedFigure]:
    """One figure for each unit of cost."""
    files = {"calls": "frontier.svg", "tokens": "frontier-tokens.svg"}
    return [
        PublishedFigure(file=RESULTS / file, numbers=partial(_numbers, unit), draw=partial(_draw, unit))
        for unit, file in files.items()
    ]


def _numbers(unit: str) -> Numbers:
    return {benchmark: _numbers_of(benchmark, unit) for benchmark in BENCHMARKS}


def _numbers_of(benchmark: str, unit: str) -> Mapping[str, Sequence[Point]]:
    found = known_report(newest_study(benchmark))
    arms = found["arms"]
    named = {
        "no memory": "baseline",
        "memory always": best_always(arms),
        "retry": "retry",
        "vote": "vote",
        "certified 2%": "heedful",
    }
    lines: dict[str, list[Point]] = {family: [] for family in LINES}
    for point in found["frontier"]:
        lines[point["family"]].append((f"λ = {point['cost']:g}", *_at(point, unit)))
    points = [(label, *_at(arms[arm], unit)) for label, arm in named.items() if arm in arms]
    return {**lines, "points": [*points, ("threshold policy", *_threshold(newest_study(benchmark), unit))]}


def _threshold(study: str, unit: str) -> tuple[float, float]:
    """The fit side's best threshold policy without a harm limit; its report does not count tokens."""
    arm = family_arm(study, "threshold")
    return round(arm.calls if unit == "calls" else arm.tokens, 4), round(100 * arm.accuracy.value, 3)


def _at(arm: Fields, unit: str) -> tuple[float, float]:
    cost = calls_of(arm) if unit == "calls" else arm["tokens_per_task"]
    return round(cost, 4), round(100 * arm["accuracy"], 3)


def _draw(unit: str, figure: "Figure", numbers: Numbers) -> None:
    for place, (benchmark, drawn) in enumerate(numbers.items(), start=1):
        axes = figure.add_subplot(1, len(numbers), place)
        for family, (colour, line, label) in LINES.items():
            _, costs, rights = zip(*drawn[family], strict=True)
            axes.plot(costs, rights, line, color=colour, markersize=4, label=label)
        for label, cost, right in drawn["points"]:
            colour, marker = MARKS[label]
            axes.plot(cost, right, marker, color=colour, markersize=9, label=label, linestyle="none")
        axes.set_title(BENCHMARKS[benchmark])
        axes.set_xlabel(f"{unit} per question")
    figure.axes[0].set_ylabel("right, %")
