"""Replay any policy on the recorded passes, by array arithmetic, as the live controller would decide."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from heedful.errors import PolicyError
from heedful.memory.likeness import answer_similarity
from heedful.protocol.table import Bools, Column, Floats, Ints, Table, make_column
from heedful.protocol.value_replay import decide, row_views
from heedful.stages.accept import needs_confidence
from heedful.stages.answer import same_answer
from heedful.stages.calibrate import features_of, probability
from heedful.stages.feasibility import looks_at_confidence, measured_signal
from heedful.stages.value import Estimates, compares_meanings
from heedful.stages.value_features import Similarity
from heedful.types import LEAST_SURE, Calibrator, Policy, ValueRule, ValueTrees


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyReplay:
    """What a policy does, row by row."""

    consulted: Bools
    chosen: Ints
    """The index of the source that became the answer; -1: the first pass."""
    right: Bools
    calls: Ints
    tokens: Ints
    decoded: tuple[Bools, ...]
    """For each of the policy's sources, the rows on which it was decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsultReplay:
    """What a policy would do if every row were routed; the threshold only selects rows."""

    confidence: Floats
    """Of the first pass; NaN where it was not measured."""
    chosen: Ints
    right: Bools
    extra_calls: Ints
    extra_tokens: Ints
    decoded: tuple[Bools, ...]
    first: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Counts of one policy at several thresholds."""

    right: Ints
    helps: Ints
    hurts: Ints
    """Against the memory-free pass."""
    calls: Ints
    tokens: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalSpend:
    """The cost of a signal that asks questions of its own, row by row."""

    calls: Ints | int
    tokens: Ints | int


NOTHING_ASKED = SignalSpend(calls=0, tokens=0)


class Replayer:
    """Replays policies on one table; shared results are computed once."""

    def __init__(self, table: Table, similar: Similarity = answer_similarity) -> None:
        self.table = table
        self._similar = similar
        self.base_right = table.column("none").right
        self._unknown = np.full(len(table), np.nan)
        self._firsts: dict[str, Column] = {}
        self._calibrated: dict[
            tuple[int, int, Calibrator], Floats
        ] = {}  # by the ids of columns that are kept alive
        self._equal: dict[tuple[str, str, bool], Bools] = {}
        self._valued: dict[tuple[str, tuple[str, ...], int], tuple[ValueTrees, list[Estimates]]] = {}
        self._orders: dict[int, tuple[Ints, Floats]] = {}  # by the id of an array that the table keeps

    def replay(self, policy: Policy) -> PolicyReplay:
        """The policy's answers on every row."""
        if policy.value is not None:
            return self._replay_value(policy, policy.value)
        looks = looks_at_confidence(policy)
        if looks and measured_signal(policy).extra_calls and not self._recorded(policy):
            raise PolicyError(
                f"the signal {policy.signal!r} makes further model calls, which were not recorded, so it "
                "cannot be replayed; add it to [fit] signals and record again"
            )
        made = self.consult(policy)
        asked = self._asked(policy, made.first) if looks else NOTHING_ASKED
        consulted = routed(made.confidence, policy)
        return PolicyReplay(
            consulted=consulted,
            chosen=np.where(consulted, made.chosen, -1),
            right=np.where(consulted, made.right, made.first.right),
            calls=made.first.calls + asked.calls + np.where(consulted, made.extra_calls, 0),
            tokens=made.first.tokens + asked.tokens + np.where(consulted, made.extra_tokens, 0),
            decoded=tuple(consulted & tried for tried in made.decoded),
        )

    def _replay_value(self, policy: Policy, rule: ValueRule) -> PolicyReplay:
        """Ask while it pays, row by row; estimates are kept for other costs and margins."""
        first, n = self.first(policy.first), len(self.table)
        columns = [self.table.column(source) for source in policy.sources]
        passing = [_guards_pass(column, policy) for column in columns]
        chosen, right = np.full(n, -1), first.right.copy()
        calls, tokens = first.calls.copy(), first.tokens.copy()
        decoded, consulted = [np.zeros(n, dtype=bool) for _ in columns], np.zeros(n, dtype=bool)
        for row, estimates in enumerate(self.estimates(policy, rule.trees)):
            allowed = [place for place, column in enumerate(passing, start=1) if column[row]]
            decision = decide(estimates, rule, allowed, policy.budget.passes)
            consulted[row] = bool(decision.consulted)
            for place in decision.consulted:
                column = columns[place - 1]
                decoded[place - 1][row] = column.decoded[row]
                calls[row] += column.calls[row]
                tokens[row] += column.tokens[row]
            if decision.chosen:
                chosen[row] = decision.chosen - 1
                right[row] = columns[decision.chosen - 1].right[row]
        return PolicyReplay(
            consulted=consulted,
            chosen=chosen,
            right=right,
            calls=calls,
            tokens=tokens,
            decoded=tuple(decoded),
        )

    def estimates(self, policy: Policy, trees: ValueTrees) -> list[Estimates]:
        """What trees estimate on every row."""
        key = policy.first, policy.sources, id(trees)
        if key not in self._valued:
            rows = row_views(self.table, self.first(policy.first), policy.sources)
            similar = self._similar if compares_meanings(trees) else None
            found = [Estimates(trees=trees, views=dict(row.views), similar=similar) for row in rows]
            self._valued[key] = trees, found  # the trees too, so that their id stays their own
        return self._valued[key][1]

    def consult(self, policy: Policy) -> ConsultReplay:
        """Judge every source on every row, whatever the threshold."""
        first = self.first(policy.first)
        c = self.first_confidence(policy)
        n = len(self.table)
        chosen, final = np.full(n, -1), first.right
        extra_calls, extra_tokens = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        going, best = np.ones(n, dtype=bool), np.full(n, -np.inf)
        sources = policy.sources[: policy.budget.passes]
        decoded: list[Bools] = []
        against: list[Bools] = []  # by source: accepted, and different from the first answer
        for place, source in enumerate(sources):
            column = self.table.column(source)
            c2 = self.source_confidence(policy, source)
            decoded.append(going & column.decoded)
            asked = self._asked(policy, column) if needs_confidence(policy) else NOTHING_ASKED
            extra_calls += going * (column.calls + asked.calls)
            extra_tokens += going * (column.tokens + asked.tokens)
            wins = going & _accepts(c, c2, column, source, policy)
            if policy.combine == "agree":
                against.append(wins & ~self._same(policy.first, source, first=True))
                for earlier, other in enumerate(sources[:place]):
                    pair = against[earlier] & against[place] & self._same(other, source) & (chosen < 0)
                    chosen = np.where(pair, earlier, chosen)
                    final = np.where(pair, self.table.column(other).right, final)
                hope = np.logical_or.reduce(against) | (len(sources) - place - 1 >= 2)
                going = going & (chosen < 0) & hope
                continue
            if policy.combine == "cascade":
                going = going & ~wins
            else:
                wins &= c2 > best
                best = np.where(wins, c2, best)
            chosen = np.where(wins, place, chosen)
            final = np.where(wins, column.right, final)
        return ConsultReplay(
            confidence=c,
            chosen=chosen,
            right=final,
            extra_calls=extra_calls,
            extra_tokens=extra_tokens,
            decoded=tuple(decoded),
            first=first,
        )

    def sweep(self, policy: Policy, thresholds: Sequence[float] | Floats) -> Scores:
        """The policy's counts at every threshold, from cumulative sums over rows sorted by confidence."""
        made = self.consult(policy)
        order, known = self._order(made.confidence)
        cuts = np.where(np.isposinf(thresholds), len(order), np.searchsorted(known, thresholds, side="left"))
        first, final, base = made.first.right, made.right, self.base_right

        def at(start: Ints | Bools, change: Ints) -> Ints:
            return np.asarray(start.sum() + np.concatenate(([0], np.cumsum(change[order])))[cuts])

        asked = self._asked(policy, made.first)
        looks = np.array([looks_at_confidence(replace(policy, threshold=float(t))) for t in thresholds])
        change = final.astype(np.int64) - first
        return Scores(
            right=at(first, change),
            helps=at(first & ~base, change * ~base),
            hurts=at(~first & base, -change * base),
            calls=at(made.first.calls, made.extra_calls) + looks * int(np.sum(asked.calls)),
            tokens=at(made.first.tokens, made.extra_tokens) + looks * int(np.sum(asked.tokens)),
        )

    def _asked(self, policy: Policy, column: Column) -> SignalSpend:
        """What measuring the policy's signal on a pass costs, besides the pass."""
        signal = measured_signal(policy).name
        if signal not in column.signal_calls:
            return NOTHING_ASKED
        return SignalSpend(calls=column.signal_calls[signal], tokens=column.signal_tokens[signal])

    def _recorded(self, policy: Policy) -> bool:
        """Whether the policy's signal was recorded wherever the policy may look at it."""
        others = policy.sources if needs_confidence(policy) else ()
        columns = (self.first(policy.first), *map(self.table.column, others))
        return all(policy.signal in column.signal_calls or not column.decoded.any() for column in columns)

    def changed(self, policy: Policy, replayed: PolicyReplay) -> Bools:
        """Where the policy's answer differs from that of the memory-free pass."""
        same = self._same(policy.first, "none", first=True)
        for place, source in enumerate(policy.sources):
            same = np.where(replayed.chosen == place, self._same(source, "none"), same)
        return ~same

    def first(self, name: str) -> Column:
        """The first pass on every row: the source's, or the memory-free one if the source has no answer."""
        if name not in self._firsts:
            column, plain = self.table.column(name), self.table.column("none")
            self._firsts[name] = column if column.decoded.all() or name == "none" else _either(column, plain)
        return self._firsts[name]

    def first_confidence(self, policy: Policy) -> Floats:
        """Confidence of the first pass on every row; NaN where it is not available."""
        calibrator = None if policy.calibrators is None else policy.calibrators.first
        return self._confidence(policy.signal, self.first(policy.first), None, calibrator)

    def source_confidence(self, policy: Policy, source: str) -> Floats:
        """Confidence of a second pass on every row; NaN where it is not available."""
        column, calibrator = self.table.column(source), None
        if policy.calibrators is not None:
            if source not in policy.calibrators.sources:
                raise PolicyError(f"the policy has calibrators, but none for {source!r}")
            calibrator = policy.calibrators.sources[source]
        return self._confidence(policy.signal, column, self.first(policy.first), calibrator)

    def _confidence(
        self, signal: str, column: Column, first: Column | None, calibrator: Calibrator | None
    ) -> Floats:
        if calibrator is None:
            return column.signals.get(signal, self._unknown)
        key = id(column), id(first), calibrator
        if key not in self._calibrated:
            self._calibrated[key] = calibrated(column, first, calibrator)
        return self._calibrated[key]

    def _same(self, one: str, other: str, *, first: bool = False) -> Bools:
        """Where two sources give the same answer; `first`: `one` is the first pass."""
        if (one, other, first) not in self._equal:
            column = self.first(one) if first else self.table.column(one)
            pairs = zip(column.passes, self.table.column(other).passes, strict=True)
            self._equal[one, other, first] = np.array(
                [same_answer(a.answer, b.answer) for a, b in pairs], dtype=bool
            )
        return self._equal[one, other, first]

    def _order(self, confidence: Floats) -> tuple[Ints, Floats]:
        """Rows by confidence, unknown ones last, and the known confidences in that order."""
        if id(confidence) not in self._orders:
            order = np.argsort(confidence, kind="stable")
            known = int(np.count_nonzero(~np.isnan(confidence)))
            self._orders[id(confidence)] = order, confidence[order[:known]]
        return self._orders[id(confidence)]


def _either(column: Column, plain: Column) -> Column:
    """The passes of a source, and the memory-free ones, at extra cost, where it has no answer."""
    pairs = list(zip(column.passes, plain.passes, strict=True))
    merged = make_column(
        [own if own.status == "decoded" else other for own, other in pairs],
        np.where(column.decoded, column.right, plain.right).tolist(),
    )
    lost = ~column.decoded
    return replace(
        merged, calls=merged.calls + lost * column.calls, tokens=merged.tokens + lost * column.tokens
    )


def routed(confidence: Floats, policy: Policy) -> Bools:
    """Which rows the policy consults memory for (eq. 5)."""
    if not policy.sources or policy.threshold == -np.inf or policy.budget.passes == 0:
        return np.zeros(len(confidence), dtype=bool)
    if policy.threshold == np.inf:
        return np.ones(len(confidence), dtype=bool)
    with np.errstate(invalid="ignore"):
        return np.asarray(confidence < policy.threshold)


def features(column: Column, first: Column | None) -> list[dict[str, float]]:
    """The features of a calibrator, row by row."""
    return [
        features_of(
            row.signals,
            row.answer,
            None if first is None else first.passes[at].answer,
            [recall.score for recall in row.recalls],
        )
        for at, row in enumerate(column.passes)
    ]


def calibrated(column: Column, first: Column | None, calibrator: Calibrator) -> Floats:
    """Calibrated confidence, with the live controller's own function, so both agree to the last bit."""
    found = [probability(calibrator, values) for values in features(column, first)]
    values = np.array([np.nan if value is None else value for value in found])
    return np.where(column.decoded, values, np.nan)


def _accepts(c: Floats, c2: Floats, column: Column, source: str, policy: Policy) -> Bools:
    """Eq. 7 on every row: every guard, and the margin where the policy has one."""
    accepted = _guards_pass(column, policy)
    if not needs_confidence(policy):
        return accepted
    with np.errstate(invalid="ignore"):
        accepted = accepted & (c2 > LEAST_SURE)
        if policy.margins is not None:
            accepted &= c2 >= c + policy.margins[source]
    return accepted


def _guards_pass(column: Column, policy: Policy) -> Bools:
    """Where a source has an answer that every guard of the policy lets pass."""
    passing = column.decoded
    for guard in policy.guards:
        if guard not in column.guards and column.decoded.any():
            raise PolicyError(f"the guard {guard!r} was not recorded, so it cannot be replayed")
        passing = passing & column.guards.get(guard, passing)
    return passing
