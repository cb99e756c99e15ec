"""Where the threshold of a policy lies among the confidences of its answers."""

from collections.abc import Sequence
from math import isfinite

from heedful.dashboard.charts import histogram_chart
from heedful.dashboard.curves import Histogram, histogram
from heedful.dashboard.markup import Markup, element
from heedful.decisions import THRESHOLD_WORDS
from heedful.records import DecisionFacts
from heedful.report.phrases import figure
from heedful.types import LEAST_SURE, Policy


def routing_values(policy: Policy, facts: Sequence[DecisionFacts]) -> list[float]:
    """The numbers that route the answers of a policy; answers without one are left out."""
    by_value = policy.combine == "value"
    values = [one.net_value if by_value else one.confidence for one in facts]
    return [value for value in values if value is not None and value > LEAST_SURE]


def routing_chart(policy: Policy, values: Sequence[float]) -> Markup:
    """A histogram of the values with the threshold, and the same in words."""
    if not values:
        return element("p", "No answer of this policy in the window has a confidence.", class_="empty")
    by_value = policy.combine == "value"
    threshold = 0.0 if by_value else policy.threshold
    name = "expected gain minus cost of asking memory" if by_value else f"confidence ({policy.signal})"
    asks = sum(value > 0 if by_value else value < threshold for value in values)
    bars = histogram(values)
    about = f"Memory is consulted for {asks:,} of {len(values):,} answers."
    about += _beyond(threshold, bars, asks)
    line = threshold if isfinite(threshold) else None
    chart = histogram_chart(bars, line, name, f"Histogram of {name}. {about}")
    keys = [
        element("span", "consulted", class_="key below"),
        element("span", "kept", class_="key"),
    ]
    caption = element("figcaption", keys, f"{about} Outliers are in the outermost bars.")
    return element("figure", chart, caption, class_="flipped" if by_value else None)


def _beyond(threshold: float, bars: Histogram, asks: int) -> str:
    """What follows from a threshold that is not among the values; empty if it is."""
    if threshold in THRESHOLD_WORDS:
        return f" The policy {THRESHOLD_WORDS[threshold]} consults memory, so the chart has no threshold."
    if bars.low <= threshold <= bars.high:
        return ""
    side = "left of the chart, below" if threshold < bars.low else "right of the chart, above"
    nearly = "" if asks in (0, bars.n) else "nearly "
    mostly_asks = 2 * asks > bars.n
    follows = f"memory is consulted for {nearly}every" if mostly_asks else f"{nearly}every first"
    ending = "answer" if mostly_asks else "answer is kept"
    return f" The threshold {figure(threshold)} lies {side} {nearly}all values: {follows} {ending}."
