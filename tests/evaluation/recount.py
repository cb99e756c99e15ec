"""A policy row by row in plain Python, to hold the arrays against."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from heedful.protocol.ledger import Ledger, Pass
from heedful.protocol.workspace import Workspace
from heedful.types import Policy, Side


@dataclass(frozen=True)
class Count:
    n: int
    right: int
    helps: int
    hurts: int
    calls: int
    tokens: int
    seconds: float


Rows = Sequence[Mapping[str, Pass]]


def rows_of(space: Workspace, side: Side = "test") -> Rows:
    """The passes of each row of a side, by source."""
    rows: dict[tuple[int, str], dict[str, Pass]] = {}
    for row in Ledger(space.ledger).passes.values():
        if row.side == side:
            rows.setdefault((row.seed, row.task), {})[row.record.source] = row
    return list(rows.values())


def recount(rows: Rows, policy: Policy) -> Count:
    """What a policy does, decided one row at a time."""
    done = [(passes["none"].right, *decide(policy, passes)) for passes in rows]
    return Count(
        n=len(done),
        right=sum(final.right for _, final, _ in done),
        helps=sum(final.right and not base for base, final, _ in done),
        hurts=sum(base and not final.right for base, final, _ in done),
        calls=sum(row.record.calls for *_, used in done for row in used),
        tokens=sum(row.record.usage.tokens for *_, used in done for row in used),
        seconds=sum(row.record.seconds for *_, used in done for row in used),
    )


def decide(policy: Policy, passes: Mapping[str, Pass]) -> tuple[Pass, list[Pass]]:
    """The pass that answers, and all that were decoded for it."""
    first = passes[policy.first] if passes[policy.first].record.status == "decoded" else passes["none"]
    used = [first]
    accepted: list[tuple[float, Pass]] = []
    c = first.record.signals.get(policy.signal, -inf)
    if not (policy.threshold == inf or c < policy.threshold):
        return first, used
    for left, source in zip(range(len(policy.sources), 0, -1), policy.sources, strict=True):
        second = passes[source]
        if policy.combine == "agree" and (
            agreeing(first, accepted) or len(against(first, accepted)) + left < 2
        ):
            break
        if second.record.status != "decoded":
            continue
        used.append(second)
        c2 = second.record.signals.get(policy.signal, -inf)
        refused = any(second.record.guards[guard] for guard in policy.guards)
        if not refused and (policy.margins is None or c2 >= c + policy.margins[source]):
            accepted.append((c2, second))
            if policy.combine == "cascade":
                break
    if policy.combine == "agree":
        return agreeing(first, accepted) or first, used
    return (max(accepted, key=lambda pair: pair[0])[1] if accepted else first), used


def against(first: Pass, accepted: Sequence[tuple[float, Pass]]) -> list[Pass]:
    return [row for _, row in accepted if row.record.answer != first.record.answer]


def agreeing(first: Pass, accepted: Sequence[tuple[float, Pass]]) -> Pass | None:
    """The first of two that say the same, and not what the first pass said."""
    others = against(first, accepted)
    said = [row.record.answer for row in others]
    return next((row for row in others if said.count(row.record.answer) > 1), None)
