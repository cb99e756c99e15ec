"""The figure of an agent report: every arm's score against no memory."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from heedful.agents.agent_metrics import BASELINE, ArmResult
from heedful.report.svg import BLUE, GREY, Figure, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def score_figure(results: Mapping[str, ArmResult], main: str) -> Figure:
    """Paired score differences to no memory with their intervals; the main arm is coloured."""
    arms = [result for name, result in results.items() if name != BASELINE]

    def paint(axes: "Axes") -> None:
        for place, result in enumerate(reversed(arms)):
            score = result.delta["score"]
            colour = BLUE if result.name == main else GREY
            axes.plot([score.low, score.high], [place, place], color=colour, linewidth=2)
            axes.plot([score.value], [place], "o", color=colour)
        axes.axvline(0, color="#888888", linewidth=1)
        axes.set_yticks(range(len(arms)), [result.name for result in reversed(arms)])
        axes.set_xlabel("score difference to no memory, 95% interval")

    spoken = ", ".join(f"{result.name} {result.delta['score'].value:+.3f}" for result in arms)
    caption = f"Paired by episode, n = {results[BASELINE].episodes}."
    return draw("scores", f"Score differences to no memory: {spoken}", caption, 0.5 + 0.4 * len(arms), paint)
