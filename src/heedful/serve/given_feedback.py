"""Feedback as a person or a program gives it."""

import re
from typing import Any, Literal

import msgspec

from heedful.benchmarks.metrics import metric_named, read_number
from heedful.errors import UsageError
from heedful.feedback import answer_feedback, grade_feedback, preference_feedback
from heedful.memory.feedback import FeedbackReceipt
from heedful.records import Decision, Feedback


class GivenFeedback(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Feedback on a decision: exactly one of `right`, `score`, `answer` and `prefer`."""

    decision: str
    right: bool | None = None
    score: float | None = None
    """From 0 to 1: more than a half is right, less is wrong."""
    answer: str | None = None
    prefer: Literal["first", "memory", "tie"] | None = None
    given_metric: str | None = msgspec.field(default=None, name="metric")
    """How an answer is compared; None: as text."""

    @property
    def metric(self) -> str:
        return "text" if self.given_metric is None else self.given_metric


def feedback_on(decision: Decision, given: GivenFeedback) -> Feedback:
    """The feedback on a decision."""
    values = (given.right, given.score, given.answer, given.prefer)
    if sum(value is not None for value in values) != 1:
        raise UsageError("give exactly one of right, score, answer and prefer")
    if given.given_metric is not None and given.answer is None:
        raise UsageError("metric has no effect without answer; leave it out")
    if given.answer is not None:
        _refuse_unmeant(given.answer, given.metric)
        return answer_feedback(decision, given.answer, given.metric, metric_named(given.metric))
    if given.prefer is not None:
        return preference_feedback(decision, given.prefer)
    return grade_feedback(decision, bool(given.right) if given.score is None else _is_right(given.score))


def _refuse_unmeant(answer: str, metric: str) -> None:
    """Refuse an answer that no pass could match by its metric, so that all would be graded wrong."""
    if metric.startswith("json:") and not all(metric.removeprefix("json:").split(".")):
        raise UsageError(f"the metric {metric} has an empty path; write one such as json:result.total")
    if metric == "number" and read_number(answer) is None:
        raise UsageError(f"{answer!r} is not a number; give one, or choose another metric")
    if metric == "choice" and not re.search(r"\w", answer):
        raise UsageError(f"{answer!r} is not a choice; give its letter or label, or choose another metric")


def _is_right(score: float) -> bool:
    if not 0 <= score <= 1 or score == 0.5:
        raise UsageError(f"the score {score:g} is neither right nor wrong; give 0 to 1, but not 0.5")
    return score > 0.5


def receipt_fields(said: Feedback, receipt: FeedbackReceipt) -> dict[str, Any]:
    """What became of feedback, as JSON."""
    return {
        "decision": said.decision,
        "kind": said.kind,
        "value": said.value,
        "metric": said.metric,
        "grades": list(said.grades),
        "new": receipt.new,
        "evidence": [
            {"bank": bank, "entry": e.entry, "version": e.version, "task": e.task, "utility": e.utility}
            for bank, seen in receipt.evidence.items()
            for e in seen
        ],
    }
