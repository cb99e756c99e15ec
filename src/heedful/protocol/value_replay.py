"""Value policies from recorded passes: the live functions, row by row."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from heedful.protocol.table import Column, Table
from heedful.records import PassRecord
from heedful.stages.value import Asked, Estimates, best_answer, sources_to_ask
from heedful.stages.value_features import PassView
from heedful.types import ValueRule


@dataclass(frozen=True, slots=True, kw_only=True)
class RowViews:
    """One row as the estimator sees it: a view by place, for the passes that have an answer to judge."""

    views: Mapping[int, PassView]
    right: Mapping[int, bool]
    passes: int | None = None
    """How many sources may be asked at most; None: all."""

    def states(self) -> Iterator[Asked]:
        """What may have been asked so far: the first pass with any set of sources that answered."""
        sources = [place for place in self.views if place > 0]
        most = len(sources) if self.passes is None else min(self.passes, len(sources))
        for size in range(most + 1):
            for chosen in combinations(sources, size):
                yield (0, *chosen)


def row_views(
    table: Table, first: Column, sources: Sequence[str], passes: int | None = None
) -> list[RowViews]:
    """Every row of a table, with its first pass and these sources, of which `passes` may be asked."""
    columns = [first, *(table.column(source) for source in sources)]
    return [
        RowViews(
            views={
                place: record_view(column.passes[row])
                for place, column in enumerate(columns)
                if place == 0 or column.decoded[row]
            },
            right={place: bool(column.right[row]) for place, column in enumerate(columns)},
            passes=passes,
        )
        for row in range(len(table))
    ]


def record_view(record: PassRecord) -> PassView:
    """A recorded pass as the estimator sees it."""
    return PassView(
        answer=record.answer,
        signals=record.signals,
        tokens=record.usage.completion_tokens,
        characters=len(record.text),
        recall=max((recall.score for recall in record.recalls), default=None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueDecision:
    """What a value policy does on one row."""

    consulted: tuple[int, ...]
    """Places of the sources that were asked, in the order of asking."""
    chosen: int
    """The place whose answer is given; 0: the first pass."""


def decide(
    estimates: Estimates, rule: ValueRule, allowed: Sequence[int], passes: int | None
) -> ValueDecision:
    """Ask while it pays, then choose; `allowed` are the places whose guards pass."""
    consulted = tuple(step.place for step in sources_to_ask(estimates, rule, passes) if step.pays)
    asked = estimates.answered(consulted)
    answered = [place for place in asked if place in allowed]
    return ValueDecision(consulted=consulted, chosen=best_answer(estimates, rule.margin, asked, answered))
