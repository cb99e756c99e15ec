"""Counters in the text format of Prometheus."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from heedful.types import Outcome

ABOUT: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "requests": ("Requests by path and status.", ("path", "status")),
    "decisions": ("Decisions by policy, route and verdict.", ("policy", "route", "verdict")),
    "bypasses": ("Chat requests that passed through, by reason.", ("reason",)),
    "tokens": ("Tokens of all passes.", ("kind",)),
    "model_calls": ("Model calls of all passes.", ()),
    "faults": ("Failures that did not lose an answer, by stage.", ("stage",)),
    "feedback": ("Feedback by kind.", ("kind",)),
}
"""Each counter with its labels; all values of labels come from heedful, none from a request."""
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


@dataclass(slots=True)
class ServeMetrics:
    """What `/metrics` reports."""

    counts: Counter[tuple[str, ...]] = field(default_factory=Counter)
    """By the counter's name and the values of its labels."""
    slots: dict[str, list[int]] = field(default_factory=dict)
    """By route: how many answers took at most each of the seconds, and how many longer."""
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def count(self, name: str, *labels: str) -> None:
        self.counts[(name, *labels)] += 1

    def count_outcome(self, policy: str, outcome: Outcome) -> None:
        """Count a decision, its calls, tokens, time and faults."""
        counts, route, verdict = self.counts, outcome.route.choice, outcome.verdict
        counts["decisions", policy, route, "none" if verdict is None else verdict.choice] += 1
        counts["model_calls",] += outcome.calls
        counts["tokens", "prompt"] += outcome.usage.prompt_tokens
        counts["tokens", "completion"] += outcome.usage.completion_tokens
        slots = self.slots.setdefault(route, [0] * (len(SECONDS) + 1))
        slots[bisect_left(SECONDS, outcome.seconds)] += 1
        self.seconds[route] += outcome.seconds
        for fault in outcome.faults:
            counts["faults", fault.stage.partition(":")[0]] += 1

    def text(self, gauges: Mapping[str, float]) -> str:
        """The Prometheus text; `gauges` adds current values."""
        lines = [line for name in ABOUT for line in self._counter(name)]
        lines += self._histogram()
        for name, value in gauges.items():
            lines += [f"# TYPE heedful_{name} gauge", f"heedful_{name} {value:g}"]
        return "\n".join(lines) + "\n"

    def _counter(self, name: str) -> Iterator[str]:
        about, labels = ABOUT[name]
        yield f"# HELP heedful_{name}_total {about}"
        yield f"# TYPE heedful_{name}_total counter"
        for (counted, *values), count in self.counts.items():
            if counted == name:
                yield f"heedful_{name}_total{_labelled(dict(zip(labels, values, strict=True)))} {count}"

    def _histogram(self) -> Iterator[str]:
        yield "# HELP heedful_answer_seconds Time to decide, by route."
        yield "# TYPE heedful_answer_seconds histogram"
        for route, slots in self.slots.items():
            total = 0
            for limit, count in zip((*map(str, SECONDS), "+Inf"), slots, strict=True):
                total += count
                yield f"heedful_answer_seconds_bucket{_labelled({'route': route, 'le': limit})} {total}"
            yield f"heedful_answer_seconds_sum{_labelled({'route': route})} {self.seconds[route]:g}"
            yield f"heedful_answer_seconds_count{_labelled({'route': route})} {total}"


def _labelled(labels: Mapping[str, str]) -> str:
    quoted = [f'{name}="{_escaped(value)}"' for name, value in labels.items()]
    return f"{{{','.join(quoted)}}}" if quoted else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
