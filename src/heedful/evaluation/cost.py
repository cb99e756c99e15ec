"""What the study cost, and what running every scored policy would have cost."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heedful.evaluation.study_data import StudyData
from heedful.protocol.ledger import Pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """The total cost of some passes."""

    passes: int
    calls: int
    tokens: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    fit: Spend
    test: Spend
    policies: int
    """Policies scored on the fit side, as far as the lock records them."""
    fit_rows: int
    rerun: Spend
    """At least one memory-free pass for each policy and fit row: a lower bound."""

    @property
    def model_calls(self) -> int:
        return self.fit.calls + self.test.calls


def count_cost(data: StudyData) -> Cost:
    """Count what was decoded, and a lower bound of what decoding for each policy would have cost."""
    story = data.lock.fit
    path = 0 if story.certificate is None else len(story.certificate.path)
    policies, rows = max(story.policies, path, 1), data.lock.choosing_rows
    if story.unlimited is not None and story.unlimited.policies:  # the same grid, on every row
        policies, rows = story.unlimited.policies, story.unlimited.rows
    plain = data.fit.table.column("none")
    passes = policies * rows
    return Cost(
        fit=_spend(data.passes["fit"]),
        test=_spend(data.passes["test"]),
        policies=policies,
        fit_rows=rows,
        rerun=Spend(
            passes=passes,
            calls=passes,
            tokens=round(passes * float(plain.tokens.mean())),
            seconds=passes * float(np.mean([row.seconds for row in plain.passes])),
        ),
    )


def _spend(passes: Sequence[Pass]) -> Spend:
    return Spend(
        passes=sum(row.record.status == "decoded" for row in passes),
        calls=sum(
            row.record.calls + sum(cost.calls for cost in row.record.signal_costs.values()) for row in passes
        ),
        tokens=sum(
            row.record.usage.tokens + sum(cost.usage.tokens for cost in row.record.signal_costs.values())
            for row in passes
        ),
        seconds=sum(row.record.seconds for row in sorted(passes, key=lambda row: row.key)),
    )
