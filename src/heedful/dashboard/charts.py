"""Small SVG charts: coloured by the style sheet, described in words for screen readers."""

from collections.abc import Sequence

from heedful.dashboard.curves import CurvePoint, Histogram
from heedful.dashboard.markup import Markup, element, join
from heedful.report.phrases import MINUS, percent

WIDTH, HEIGHT = 520, 250
LEFT, RIGHT, TOP, BOTTOM = 54, 14, 24, 50
"""Margins around the plot, for the labels of the axes."""


def interval_bar(low: float, value: float, high: float, label: str) -> Markup:
    """An effect from -1 to 1 with its interval; the line in the middle is 0."""

    def x(effect: float) -> float:
        return 60 + 56 * effect

    tone = "loss" if high < 0 else "gain" if low > 0 else "unclear"
    return element(
        "svg",
        element("line", x1=60, x2=60, y1=0, y2=16, class_="zero"),
        element("line", x1=x(low), x2=x(high), y1=8, y2=8, class_="whisker"),
        element("circle", cx=x(value), cy=8, r=3.5),
        viewBox="0 0 120 16",
        class_=f"interval {tone}",
        role="img",
        aria_label=label,
    )


def histogram_chart(bars: Histogram, threshold: float | None, label: str, about: str) -> Markup:
    """A histogram; bars below the threshold, which consult memory, have another colour."""
    plot = _Plot(bars.low, bars.high, 0.0, float(max(bars.counts)))
    step = (bars.high - bars.low) / len(bars.counts)
    drawn = []
    for at, count in enumerate(bars.counts):
        start = bars.low + at * step
        below = threshold is not None and start + step / 2 < threshold
        drawn.append(
            element(
                "rect",
                x=plot.x(start) + 0.5,
                y=plot.y(count),
                width=plot.x(start + step) - plot.x(start) - 1,
                height=plot.y(0) - plot.y(count),
                class_="bar below" if below else "bar",
            )
        )
    return _chart(plot, [*drawn, plot.upright(threshold)], label, about, ["0", f"{max(bars.counts):,}"])


def curve_chart(
    points: Sequence[CurvePoint],
    label: str,
    about: str,
    *,
    span: tuple[float, float] | None = None,
    diagonal: bool = False,
) -> Markup:
    """Shares of right answers with their intervals; the diagonal is perfect calibration."""
    low, high = span or _padded([point.x for point in points])
    plot = _Plot(low, high, 0.0, 1.0)
    line = " ".join(f"{plot.x(p.x):.1f},{plot.y(p.right.value):.1f}" for p in points)
    ideal = element("line", x1=plot.x(0), y1=plot.y(0), x2=plot.x(1), y2=plot.y(1), class_="ideal")
    whiskers = [plot.whisker(point) for point in points]
    dots = [plot.dot(point) for point in points]
    parts = [ideal if diagonal else None, *whiskers, element("polyline", points=line, class_="curve"), *dots]
    return _chart(plot, parts, label, about, ["0%", "100%"])


def _padded(values: Sequence[float]) -> tuple[float, float]:
    room = (max(values) - min(values)) / 20 or 0.5
    return min(values) - room, max(values) + room


def _tick(value: float) -> str:
    return f"{value:.3g}".replace("-", MINUS)


class _Plot:
    """Where values lie in the drawing."""

    def __init__(self, left: float, right: float, bottom: float, top: float) -> None:
        self.left, self.right, self.bottom, self.top = left, right, bottom, top

    def x(self, value: float) -> float:
        share = (value - self.left) / (self.right - self.left)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        share = (value - self.bottom) / (self.top - self.bottom or 1.0)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def whisker(self, point: CurvePoint) -> Markup:
        x, low, high = self.x(point.x), self.y(point.right.low), self.y(point.right.high)
        return element("line", x1=x, x2=x, y1=low, y2=high, class_="whisker")

    def dot(self, point: CurvePoint) -> Markup:
        title = element("title", f"{percent(point.right.value)} of {point.right.n} right")
        return element("circle", title, cx=self.x(point.x), cy=self.y(point.right.value), r=4)

    def upright(self, value: float | None) -> Markup | None:
        """A marked threshold; outside the picture it is at the edge, with an arrow."""
        if value is None:
            return None
        x = self.x(min(max(value, self.left), self.right))
        late = x > WIDTH / 2
        before, after = "← " if value < self.left else "", " →" if value > self.right else ""
        return join(
            [
                element("line", x1=x, x2=x, y1=4, y2=HEIGHT - BOTTOM, class_="mark"),
                element(
                    "text",
                    f"{before}threshold {_tick(value)}{after}",
                    x=x - 6 if late else x + 6,
                    y=16,
                    text_anchor="end" if late else "start",
                ),
            ]
        )


def _chart(
    plot: _Plot, drawn: Sequence[Markup | None], label: str, about: str, heights: Sequence[str]
) -> Markup:
    floor, ceiling = HEIGHT - BOTTOM, TOP
    ends = [(plot.left, "start"), ((plot.left + plot.right) / 2, "middle"), (plot.right, "end")]
    return element(
        "svg",
        element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=floor, y2=floor, class_="axis"),
        element("line", x1=LEFT, x2=LEFT, y1=ceiling, y2=floor, class_="axis"),
        drawn,
        (element("text", _tick(value), x=plot.x(value), y=floor + 18, text_anchor=a) for value, a in ends),
        element("text", heights[0], x=LEFT - 6, y=floor + 4, text_anchor="end"),
        element("text", heights[1], x=LEFT - 6, y=ceiling + 5, text_anchor="end"),
        element("text", label, x=(LEFT + WIDTH - RIGHT) / 2, y=HEIGHT - 8, text_anchor="middle"),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        class_="chart",
        role="img",
        aria_label=about,
    )
