"""Which of several recalled entries carried an outcome: leave each out and decode again.

Borderline outcomes can change whenever a prompt is decoded again. So the complete prompt is decoded
again first, and a row whose outcome does not recur credits no entry.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from heedful.experiments.fixed_retrieval import frozen, original_recalls
from heedful.experiments.variant import Experiment, only
from heedful.types import Recall, Side


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryCredit:
    """The outcomes an entry was present at, and those that change if it is left out."""

    entry: str
    helps: int
    hurts: int
    carried_helps: int
    carried_hurts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditResult:
    side: Side
    source: str
    rows: int
    """Rows on which memory changed the grade."""
    unstable: int
    """Rows whose outcome did not recur when the same prompt was decoded again."""
    shared: int
    """Rows whose outcome persists whichever entry is left out: no single entry carries it."""
    calls: int
    entries: Sequence[EntryCredit]
    """The most harmful first."""


async def credit(experiment: Experiment) -> CreditResult:
    """Leave out each recalled entry on every row that memory helped or hurt."""
    setup, side, source = experiment.setup, experiment.side, experiment.source
    table = await experiment.table()
    plain, column = table.column("none"), table.column(source)
    seed = setup.study.seeds[0]  # recalls and greedy passes are the same under every seed
    changed = {
        table.tasks[at]: bool(column.right[at])
        for at in (column.decoded & (plain.right != column.right)).nonzero()[0].tolist()
        if table.seeds[at] == seed
    }
    recalls = original_recalls(table, source, experiment.entries)
    sources = frozen(only(setup, side, source), source, recalls, again=True)
    folder = experiment.space.folder / experiment.name
    ledger, calls = await experiment.record(
        folder / f"{source}-again", "decoding again", sources, changed, seeds=[seed]
    )
    stable = {
        task: right
        for task, right in changed.items()
        if ledger.passes[side, seed, source, task].right == right
    }
    most = max((len(recalls[task]) for task in stable), default=0)
    without: dict[str, dict[str, bool]] = {task: {} for task in stable}
    for left in range(most):
        rest = {task: _without(recalled, left) for task, recalled in recalls.items()}
        sources = frozen(only(setup, side, source), source, rest)
        title = f"without entry {left + 1}"
        place = folder / f"{source}-without-{left + 1}"
        ledger, extra_calls = await experiment.record(place, title, sources, stable, seeds=[seed])
        calls += extra_calls
        for task in stable:
            if left < len(recalls[task]):
                row = ledger.passes[side, seed, source, task]
                baseline = ledger.passes[side, seed, "none", task]
                without[task][recalls[task][left].entry.id] = (row if row.record.calls else baseline).right
    counted = _counted(side, source, stable, without, calls)
    return replace(counted, rows=len(changed), unstable=len(changed) - len(stable))


def _without(recalls: Sequence[Recall], left: int) -> tuple[Recall, ...]:
    """The recalls without the one at this index; none if there is no such index."""
    if left >= len(recalls):
        return ()
    return tuple(recall for place, recall in enumerate(recalls) if place != left)


def _counted(
    side: Side,
    source: str,
    changed: Mapping[str, bool],
    without: Mapping[str, Mapping[str, bool]],
    calls: int,
) -> CreditResult:
    counts: dict[str, list[int]] = {}
    shared = 0
    for task, right in changed.items():
        carried = {entry for entry, alone in without[task].items() if alone != right}
        shared += not carried
        for entry in without[task]:
            tally = counts.setdefault(entry, [0, 0, 0, 0])
            tally[0 if right else 1] += 1
            tally[2 if right else 3] += entry in carried
    found = [
        EntryCredit(entry=entry, helps=h, hurts=u, carried_helps=ch, carried_hurts=cu)
        for entry, (h, u, ch, cu) in counts.items()
    ]
    found.sort(key=lambda one: (one.carried_helps - one.carried_hurts, one.helps - one.hurts, one.entry))
    return CreditResult(
        side=side, source=source, rows=len(changed), unstable=0, shared=shared, calls=calls, entries=found
    )
