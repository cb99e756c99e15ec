"""The figures: accuracy against calls, and against tokens, on the three arithmetic benchmarks."""

from io import StringIO

from heedful.report.svg import BLUE, GREEN, GREY, ORANGE, PURPLE, SETTINGS
from heedful.types import digest_of
from published.cells import BENCHMARKS, RESULTS, Fields, best_always, calls_of, known_report, newest_study

FILES = {"calls": RESULTS / "frontier.svg", "tokens": RESULTS / "frontier-tokens.svg"}
"""By the unit of cost."""
Point = tuple[str, float, float]
"""A label, the cost per question, and the share of right answers in percent."""
LINES = {"value": (BLUE, "o-", "heedful, by the price of a call"), "prior": (GREEN, "s--", "its prior alone")}
MARKS = {
    "no memory": (GREY, "o"),
    "memory always": (ORANGE, "D"),
    "retry": (PURPLE, "v"),
    "vote": (PURPLE, "^"),
    "certified 2%": (BLUE, "*"),
}


def numbers(unit: str) -> dict[str, dict[str, list[Point]]]:
    """Everything that is drawn, by benchmark: the lines, and the points."""
    return {benchmark: _numbers(benchmark, unit) for benchmark in BENCHMARKS}


def _numbers(benchmark: str, unit: str) -> dict[str, list[Point]]:
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
    return {
        **lines,
        "points": [(label, *_at(arms[arm], unit)) for label, arm in named.items() if arm in arms],
    }


def _at(arm: Fields, unit: str) -> tuple[float, float]:
    cost = calls_of(arm) if unit == "calls" else arm["tokens_per_task"]
    return round(cost, 4), round(100 * arm["accuracy"], 3)


def numbers_digest(unit: str) -> str:
    return digest_of(numbers(unit))


def drawn_digest(unit: str) -> str:
    """The digest of the numbers in the published figure; empty if there is none."""
    text = FILES[unit].read_text(encoding="utf-8") if FILES[unit].exists() else ""
    return text.partition("<!-- numbers ")[2].partition(" -->")[0]


def outdated_figures() -> list[str]:
    """The units whose published figure was drawn from other numbers."""
    return [unit for unit in FILES if drawn_digest(unit) != numbers_digest(unit)]


def write_figure(unit: str) -> None:
    """Draw a figure; a comment in its file has the digest of its numbers."""
    from matplotlib import style
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with style.context(["default", {**SETTINGS, "svg.hashsalt": "frontier"}]):
        figure = Figure(figsize=(10.2, 3.9))
        canvas = FigureCanvasSVG(figure)
        for place, (benchmark, drawn) in enumerate(numbers(unit).items(), start=1):
            axes = figure.add_subplot(1, 3, place)
            for family, (colour, line, label) in LINES.items():
                _, costs, rights = zip(*drawn[family], strict=True)
                axes.plot(costs, rights, line, color=colour, markersize=4, label=label)
            for label, cost, right in drawn["points"]:
                colour, marker = MARKS[label]
                axes.plot(cost, right, marker, color=colour, markersize=9, label=label, linestyle="none")
            axes.set_title(BENCHMARKS[benchmark])
            axes.set_xlabel(f"{unit} per question")
        figure.axes[0].set_ylabel("right, %")
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
        text = StringIO()
        canvas.print_svg(text, metadata={"Date": None, "Creator": None})
    svg = text.getvalue().replace("<svg ", f"<!-- numbers {numbers_digest(unit)} -->\n<svg ", 1)
    FILES[unit].write_text(svg, encoding="utf-8")
