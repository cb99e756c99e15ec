"""Signs that a metric misreads the answers of a study, with examples to look at."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from heedful.benchmarks.metrics import mentions
from heedful.benchmarks.questions import OwnQuestions
from heedful.ports import Benchmark
from heedful.protocol.ledger import Pass
from heedful.stages.answer import without_thinking
from heedful.types import Item

EXAMPLES = 3
FEWEST = 3
"""Fewer passes than this are no sign."""
WRONG_SHARE = 0.25
"""Of the wrong passes: of honest mistakes, few happen to contain the target."""
ALL_SHARE = 0.02
"""Of all passes: below it, the result could not change much."""
SHORT_METRICS = ("text", "exact", "choice")
"""Metrics that accept the target and nothing around it."""
SENTENCE_WORDS = 5
"""An answer that is longer than its target by this many words is a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingExample:
    task: str
    question: str
    target: str
    answer: str
    """The part of the reply that was graded."""
    reply: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingWarning:
    problem: str
    advice: str
    examples: tuple[GradingExample, ...]


def check_grading(
    passes: Iterable[Pass], items: Mapping[str, Item], benchmark: Benchmark
) -> tuple[GradingWarning, ...]:
    """Warnings about the grades of a user's own questions; published benchmarks have fixed grading."""
    if not isinstance(benchmark, OwnQuestions):
        return ()
    rows = [row for row in passes if row.record.status == "decoded" and row.task in items]
    warnings = (_hidden_targets(rows, items, benchmark), _sentences(rows, items, benchmark))
    return tuple(warning for warning in warnings if warning is not None)


def _hidden_targets(
    rows: Sequence[Pass], items: Mapping[str, Item], benchmark: OwnQuestions
) -> GradingWarning | None:
    wrong = [row for row in rows if not row.right]
    hidden = [row for row in wrong if _mentions_target(row, items[row.task], benchmark.metric)]
    if len(hidden) < max(FEWEST, WRONG_SHARE * len(wrong), ALL_SHARE * len(rows)):
        return None
    return GradingWarning(
        problem=(
            f"The grades may be wrong: {len(hidden)} of the {len(wrong)} replies graded wrong contain the "
            f"right answer (metric {benchmark.metric}, answer found by {_found_by(benchmark)})."
        ),
        advice=(
            "Read the examples. If these replies are right, set [questions] answer, answer_pattern or "
            "metric, or tell the model in instructions how to end its reply; then record again."
        ),
        examples=_examples(hidden, items),
    )


def _sentences(
    rows: Sequence[Pass], items: Mapping[str, Item], benchmark: OwnQuestions
) -> GradingWarning | None:
    answered = [row for row in rows if row.record.answer]
    long = [row for row in answered if _is_sentence(row.record.answer, items[row.task])]
    if benchmark.metric not in SHORT_METRICS or len(long) < max(FEWEST, len(answered) / 2):
        return None
    return GradingWarning(
        problem=(
            f"The metric {benchmark.metric} accepts short answers only, but {len(long)} of {len(answered)} "
            "answers are whole sentences."
        ),
        advice=(
            "Ask for a short answer in instructions, say in [questions] answer where it is, or use the "
            "metric contains or judge."
        ),
        examples=_examples([row for row in long if not row.right] or long, items),
    )


def _mentions_target(row: Pass, item: Item, metric: str) -> bool:
    reply = without_thinking(row.record.text)
    if metric == "choice":  # a letter is in any text; the words of the right choice are not
        texts = [choice.text for choice in item.choices if choice.label in item.targets]
        return any(mentions(reply, text, "text") for text in texts)
    return any(mentions(reply, target, metric) for target in item.targets)


def _is_sentence(answer: str, item: Item) -> bool:
    longest = max(len(target.split()) for target in item.targets)
    return len(answer.split()) >= longest + SENTENCE_WORDS


def _found_by(benchmark: OwnQuestions) -> str:
    return "answer_pattern" if benchmark.answer_pattern is not None else repr(benchmark.reading)


def _examples(rows: Sequence[Pass], items: Mapping[str, Item]) -> tuple[GradingExample, ...]:
    """The first rows of distinct questions, in the order of ids."""
    first = {row.task: row for row in sorted(rows, key=lambda row: row.key, reverse=True)}
    chosen = sorted(first.values(), key=lambda row: row.task)[:EXAMPLES]
    return tuple(
        GradingExample(
            task=row.task,
            question=items[row.task].question,
            target=" | ".join(items[row.task].targets),
            answer=row.record.answer,
            reply=without_thinking(row.record.text),
        )
        for row in chosen
    )


def warning_lines(warning: GradingWarning) -> list[str]:
    """A warning and its examples as lines of text."""
    return [f"{warning.problem} {warning.advice}", *map(example_line, warning.examples)]


def example_line(example: GradingExample) -> str:
    return (
        f"{example.task}: the right answer is {example.target!r}, graded was {_cut(example.answer)!r}, "
        f"the reply was {_cut(example.reply)!r}"
    )


def _cut(text: str, most: int = 160) -> str:
    """The beginning and the end of a long text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most // 2]} … {line[-most // 2 :]}"
