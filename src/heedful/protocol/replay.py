"""Every policy from the recorded passes, by array arithmetic, as the live controller would decide."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heedful.errors import PolicyError
from heedful.protocol.table import Bools, Column, Floats, Ints, Table
from heedful.stages.accept import needs_confidence
from heedful.stages.calibrate import CALIBRATED, features_of, probability
from heedful.types import LEAST_SURE, Calibrator, Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a policy does, row by row."""

    consulted: Bools
    chosen: Ints
    """Which of the policy's sources became the answer; -1: the first pass."""
    right: Bools
    calls: Ints
    tokens: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Consulted:
    """What a policy would do if every row were routed; the threshold then only picks rows."""

    confidence: Floats
    """Of the first pass; NaN where it could not be measured."""
    first_right: Bools
    first_calls: Ints
    first_tokens: Ints
    chosen: Ints
    right: Bools
    extra_calls: Ints
    extra_tokens: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Counts of one policy at several thresholds."""

    right: Ints
    helps: Ints
    hurts: Ints
    """Against the memory-free pass."""
    calls: Ints


def replay(policy: Policy, table: Table) -> Replayed:
    """The policy's answers on every row."""
    made = consult(policy, table)
    consulted = routed(made.confidence, policy)
    return Replayed(
        consulted=consulted,
        chosen=np.where(consulted, made.chosen, -1),
        right=np.where(consulted, made.right, made.first_right),
        calls=made.first_calls + np.where(consulted, made.extra_calls, 0),
        tokens=made.first_tokens + np.where(consulted, made.extra_tokens, 0),
    )


def routed(confidence: Floats, policy: Policy) -> Bools:
    """Which rows the policy consults memory for (eq. 5)."""
    if not policy.sources or policy.threshold == -np.inf or policy.budget.passes == 0:
        return np.zeros(len(confidence), dtype=bool)
    if policy.threshold == np.inf:
        return np.ones(len(confidence), dtype=bool)
    with np.errstate(invalid="ignore"):
        return np.asarray(confidence < policy.threshold)


def consult(policy: Policy, table: Table) -> Consulted:
    """Judge every source on every row, whatever the threshold."""
    first, fallback = table.column(policy.first), table.column("none")
    c = np.where(
        first.decoded, confidence(first, None, policy, "first"), confidence(fallback, None, policy, "first")
    )
    n = len(table)
    chosen, best = np.full(n, -1), np.full(n, -np.inf)
    extra_calls, extra_tokens = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    right = np.where(first.decoded, first.right, fallback.right)
    final = right.copy()
    going = np.ones(n, dtype=bool)
    for place, source in enumerate(policy.sources[: policy.budget.passes]):
        column = table.column(source)
        tried = going & column.decoded
        extra_calls += np.where(tried, column.calls, 0)
        extra_tokens += np.where(tried, column.tokens, 0)
        c2 = confidence(column, _first_column(policy, table), policy, source)
        accepted = tried & _accepts(c, c2, column, source, policy)
        if policy.combine == "cascade":
            going &= ~accepted
            wins = accepted
        else:
            wins = accepted & (c2 > best)
            best = np.where(wins, c2, best)
        chosen = np.where(wins, place, chosen)
        final = np.where(wins, column.right, final)
    return Consulted(
        confidence=c,
        first_right=right,
        first_calls=np.where(first.decoded, first.calls, fallback.calls),
        first_tokens=np.where(first.decoded, first.tokens, fallback.tokens),
        chosen=chosen,
        right=final,
        extra_calls=extra_calls,
        extra_tokens=extra_tokens,
    )


def sweep(made: Consulted, base_right: Bools, thresholds: Sequence[float] | Floats) -> Scores:
    """The counts at every threshold, by running sums over the rows in order of confidence."""
    order = np.argsort(made.confidence, kind="stable")  # NaN last: never routed by a finite threshold
    known = int(np.count_nonzero(~np.isnan(made.confidence)))
    sorted_c = made.confidence[order[:known]]
    cuts = np.where(np.isposinf(thresholds), len(order), np.searchsorted(sorted_c, thresholds, side="left"))

    def at(before: Ints, after: Ints) -> Ints:
        change = np.concatenate(([0], np.cumsum((after - before)[order])))
        return np.asarray(before.sum() + change[cuts])

    first, final, base = (made.first_right.astype(int), made.right.astype(int), base_right.astype(int))
    return Scores(
        right=at(first, final),
        helps=at(first * (1 - base), final * (1 - base)),
        hurts=at((1 - first) * base, (1 - final) * base),
        calls=at(made.first_calls, made.first_calls + made.extra_calls),
    )


def confidence(column: Column, first: Column | None, policy: Policy, role: str) -> Floats:
    """A pass's confidence on every row by the policy's signal; NaN where it cannot be measured."""
    if policy.signal == CALIBRATED:
        if policy.calibrators is None or role not in policy.calibrators:
            raise PolicyError(f"the signal calibrated needs a calibrator for {role!r}")
        return calibrated(column, first, policy.calibrators[role])
    return column.signals.get(policy.signal, np.full(len(column.passes), np.nan))


def calibrated(column: Column, first: Column | None, calibrator: Calibrator) -> Floats:
    """Row by row with the live controller's own function, so that both agree to the last bit."""
    values = np.full(len(column.passes), np.nan)
    for at, row in enumerate(column.passes):
        if row.status == "decoded":
            said = None if first is None else first.passes[at].answer
            features = features_of(row.signals, row.answer, said, [seen.score for seen in row.recalls])
            found = probability(calibrator, features)
            values[at] = np.nan if found is None else found
    return values


def _first_column(policy: Policy, table: Table) -> Column:
    """The first pass on every row: the first source's, or the memory-free one where it had nothing."""
    first, fallback = table.column(policy.first), table.column("none")
    if first is fallback or first.decoded.all():
        return first
    from heedful.protocol.table import make_column

    return make_column(
        [row if row.status == "decoded" else fallback.passes[at] for at, row in enumerate(first.passes)]
    )


def _accepts(c: Floats, c2: Floats, column: Column, source: str, policy: Policy) -> Bools:
    """Eq. 7 on every row: every guard, and the margin where the policy has one."""
    accepted = np.ones(len(c), dtype=bool)
    for guard in policy.guards:
        if guard not in column.guards and column.decoded.any():
            raise PolicyError(f"the guard {guard!r} was not recorded, so it cannot be replayed")
        accepted &= column.guards.get(guard, accepted)
    if not needs_confidence(policy):
        return accepted
    with np.errstate(invalid="ignore"):
        accepted &= c2 > LEAST_SURE
        if policy.margins is not None:
            accepted &= c2 >= c + policy.margins[source]
    return accepted
