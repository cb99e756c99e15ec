"""A published figure: a file that knows from which numbers it was drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.report.svg import SETTINGS
from heedful.types import digest_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFigure:
    """Numbers, and how to draw them; a comment in the file has the digest of the numbers."""

    file: Path
    numbers: Callable[[], Any]
    draw: Callable[["Figure", Any], None]
    size: tuple[float, float] = (10.2, 3.9)

    @property
    def outdated(self) -> bool:
        """Whether the file was drawn from other numbers, or is missing."""
        text = self.file.read_text(encoding="utf-8") if self.file.exists() else ""
        return text.partition("<!-- numbers ")[2].partition(" -->")[0] != digest_of(self.numbers())

    def write(self) -> None:
        from matplotlib import style
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        numbers = self.numbers()
        with style.context(["default", {**SETTINGS, "svg.hashsalt": "frontier"}]):
            figure = Figure(figsize=self.size)
            canvas = FigureCanvasSVG(figure)
            self.draw(figure, numbers)
            handles, labels = figure.axes[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=4)
            text = StringIO()
            canvas.print_svg(text, metadata={"Date": None, "Creator": None})
        svg = text.getvalue().replace("<svg ", f"<!-- numbers {digest_of(numbers)} -->\n<svg ", 1)
        self.file.write_text(svg, encoding="utf-8")
