"""Curves of sensitivity: the gain by the number of graded rows."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from heedful.report.svg import BLUE, ORANGE
from published.cells import BENCHMARKS, RESULTS, published
from published.drawing import PublishedFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Line = Sequence[Mapping[str, float]]
Numbers = Mapping[str, Mapping[str, Line]]
"""By benchmark and kind of policy: rows, and the gain with its lowest and highest draw."""
LINES = {"prior and own rows": (BLUE, "o-"), "own rows only": (ORANGE, "s--")}


def labels_figure() -> PublishedFigure:
    return PublishedFigure(file=RESULTS / "labels.svg", numbers=_numbers, draw=_draw, size=(7.4, 3.9))


def _numbers() -> Numbers:
    """The curve that `benchmarks/labels.py` wrote."""
    lines: dict[str, dict[str, list[Mapping[str, float]]]] = {}
    for one in published("labels.json"):
        kind = "prior and own rows" if one["prior"] else "own rows only"
        gains = one["gains"]
        point = {"rows": one["rows"], "gain": one["gain"], "low": min(gains), "high": max(gains)}
        lines.setdefault(one["benchmark"], {}).setdefault(kind, []).append(point)
    return lines


def _draw(figure: "Figure", numbers: Numbers) -> None:
    ticks = sorted({point["rows"] for lines in numbers.values() for line in lines.values() for point in line})
    for place, (benchmark, lines) in enumerate(numbers.items(), start=1):
        axes = figure.add_subplot(1, len(numbers), place)
        for kind, line in lines.items():
            colour, style = LINES[kind]
            at = [ticks.index(point["rows"]) for point in line]
            axes.plot(at, [point["gain"] for point in line], style, color=colour, markersize=4, label=kind)
            lows, highs = ([point[end] for point in line] for end in ("low", "high"))
            axes.fill_between(at, lows, highs, color=colour, alpha=0.15, linewidth=0)
        axes.set_xticks(range(len(ticks)), [f"{rows:g}" for rows in ticks])
        axes.set_title(BENCHMARKS[benchmark])
        axes.set_xlabel("graded rows")
    figure.axes[0].set_ylabel("gain over no memory, points")
