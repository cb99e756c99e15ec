"""Draw a figure as inline SVG: the same bytes every time, scaled by the page."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import TYPE_CHECKING

from heedful.extras import importing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 5.4
"""Inches: close to the width of a phone, so text keeps its size there."""
SETTINGS = {
    "svg.fonttype": "none",
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
    "legend.fontsize": 9,
    "figure.constrained_layout.use": True,
}
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072b2", "#d55e00", "#009e73", "#aa4499", "#555555"
"""Distinguishable with every common type of colour vision (Okabe and Ito)."""
MEMORY_COLOURS = (ORANGE, GREEN, PURPLE)
MARKERS = ("s", "^", "D")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    name: str
    caption: str
    svg: str


def draw(name: str, alt: str, caption: str, height: float, paint: Callable[["Axes"], None]) -> Figure:
    """A figure of one panel; `paint` fills it, `alt` describes it in words."""
    with importing("study"):
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure as Canvas

    with _style(name):
        figure = Canvas(figsize=(WIDTH, height))
        canvas = FigureCanvasSVG(figure)
        paint(figure.add_subplot())
        text = StringIO()
        canvas.print_svg(text, metadata={"Date": None, "Creator": None})  # type: ignore[no-untyped-call]
    return Figure(name=name, caption=caption, svg=_inline(text.getvalue(), name, alt))


def _style(name: str) -> AbstractContextManager[None]:
    """matplotlib's defaults and our settings, independent of the user's matplotlibrc."""
    with importing("study"):
        from matplotlib import style

    return style.context(["default", {**SETTINGS, "svg.hashsalt": name}])


def _inline(text: str, name: str, alt: str) -> str:
    """Only the drawing, with ids that are unique on the page."""
    box = re.search(r'viewBox="([^"]+)"', text)
    assert box is not None, "matplotlib writes a viewBox"
    body = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'(url\(|href=")#', rf"\1#{name}-", body)
    return f'<svg viewBox="{box[1]}" role="img" aria-label="{escape(alt)}">{body}</svg>'
