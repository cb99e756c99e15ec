"""The figure of README.md: accuracy against calls on the three arithmetic benchmarks."""

from io import StringIO

from heedful.report.svg import BLUE, GREEN, GREY, ORANGE, PURPLE, SETTINGS
from heedful.types import digest_of
from published.cells import BENCHMARKS, RESULTS, best_always, calls_of, known_report

FILE = RESULTS / "frontier.svg"
Point = tuple[str, float, float]
"""A label, calls per question, and the share of right answers in percent."""
LINES = {"value": (BLUE, "o-", "heedful, by the price of a call"), "prior": (GREEN, "s--", "its prior alone")}
MARKS = {
    "no memory": (GREY, "o"),
    "memory always": (ORANGE, "D"),
    "retry": (PURPLE, "v"),
    "vote": (PURPLE, "^"),
    "certified 2%": (BLUE, "*"),
}


def numbers() -> dict[str, dict[str, list[Point]]]:
    """Everything that is drawn, by benchmark: the lines, and the points."""
    return {benchmark: _numbers(benchmark) for benchmark in BENCHMARKS}


def _numbers(benchmark: str) -> dict[str, list[Point]]:
    found = known_report(f"{benchmark}-value")
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
        lines[point["family"]].append((f"λ = {point['cost']:g}", *_at(point)))
    return {**lines, "points": [(label, *_at(arms[name])) for label, name in named.items()]}


def _at(arm: dict[str, float]) -> tuple[float, float]:
    return round(calls_of(arm), 4), round(100 * arm["accuracy"], 3)


def numbers_digest() -> str:
    return digest_of(numbers())


def drawn_digest() -> str:
    """The digest of the numbers in the published figure; empty if there is none."""
    text = FILE.read_text(encoding="utf-8") if FILE.exists() else ""
    return text.partition("<!-- numbers ")[2].partition(" -->")[0]


def write_figure() -> None:
    """Draw the figure; a comment in the file has the digest of its numbers."""
    from matplotlib import style
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with style.context(["default", {**SETTINGS, "svg.hashsalt": "frontier"}]):
        figure = Figure(figsize=(10.2, 3.9))
        canvas = FigureCanvasSVG(figure)
        for place, (benchmark, drawn) in enumerate(numbers().items(), start=1):
            axes = figure.add_subplot(1, 3, place)
            for family, (colour, line, label) in LINES.items():
                _, calls, right = zip(*drawn[family], strict=True)
                axes.plot(calls, right, line, color=colour, markersize=4, label=label)
            for label, calls, right in drawn["points"]:
                colour, marker = MARKS[label]
                axes.plot(calls, right, marker, color=colour, markersize=9, label=label, linestyle="none")
            axes.set_title(BENCHMARKS[benchmark])
            axes.set_xlabel("calls per question")
        figure.axes[0].set_ylabel("right, %")
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
        text = StringIO()
        canvas.print_svg(text, metadata={"Date": None, "Creator": None})
    svg = text.getvalue().replace("<svg ", f"<!-- numbers {numbers_digest()} -->\n<svg ", 1)
    FILE.write_text(svg, encoding="utf-8")
