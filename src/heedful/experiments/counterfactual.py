"""What an entry's content is worth: the same study with some entries repaired or corrupted.

A free rerun recalls again, so an edit also changes which entries are recalled (drift). Fixed
retrieval keeps the recalls of the original run and changes only their content, which isolates the
effect of the content (the paper's eq. 11). Under fixed retrieval, a row that recalled no edited
entry has the same prompt under every edit; every run checks this.

A model that decodes several prompts at once does not always give the same answer to the same prompt.
So the rows that recalled an edited entry are also decoded again with the original bank: the changes
this makes are the decoder's noise, to compare the edits with.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from heedful.errors import HeedfulError
from heedful.experiments.edits import Edit, made_edits
from heedful.experiments.fixed_retrieval import original_recalls
from heedful.experiments.variant import Experiment, Variant, policies_using
from heedful.protocol.ledger import Ledger
from heedful.protocol.replay import Replayer
from heedful.protocol.table import Bools, Column, Floats, Table, make_column
from heedful.stats.arrays import by_task
from heedful.stats.bootstrap import paired_interval
from heedful.stats.intervals import Interval, share_of
from heedful.stats.mcnemar import mcnemar_by_task
from heedful.stats.randomisation import randomisation_p_value
from heedful.types import Policy, Side

EDITS = ("repair", "corrupt")
MODES = ("free", "fixed")


Version = tuple[str, str]
"""A mode of retrieval and an edit."""
VERSIONS: tuple[Version, ...] = tuple((mode, edit) for edit in EDITS for mode in MODES)
AGAIN: Version = ("fixed", "again")
"""The original bank, with the hits decoded again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Repair minus corrupt on some rows."""

    rows: int
    change: Interval | None
    helps: int
    hurts: int
    p: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EditWorth:
    """What the edits change in the answers of one policy."""

    policy: Policy
    original: Interval
    """Share right with the original bank."""
    right: Mapping[Version, Interval]
    change: Mapping[Version, Interval]
    """Compared with the original bank; with fixed recalls, the effect of the content (the first term of
    eq. 11). That of `AGAIN` is noise."""
    drift: Mapping[str, Interval]
    """By edit, what a free rerun changes beyond the content: the second term of eq. 11."""
    hits: Contrast
    """Rows whose frozen recalls contain an edited entry."""
    others: Contrast
    localised: float | None
    """One-sided p-value of the randomisation test of hit × edit: is repair minus corrupt on the hits larger
    than under random swaps of the two?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterfactualResult:
    side: Side
    source: str
    edits: Mapping[str, Edit]
    rows: int
    hits: int
    """Rows whose frozen recalls contain an edited entry."""
    repaired: int
    """Entries with a repair; the others are unchanged in the repaired bank."""
    same: Mapping[Version, float]
    """Share of rows that recall the original ids, in the same order."""
    changed: Mapping[Version, int]
    """Passes whose prompt differs from the study's."""
    arms: Mapping[str, EditWorth]


async def counterfactual(experiment: Experiment, edits: Mapping[str, Edit] | int) -> CounterfactualResult:
    """Record the passes that the edits change, and compare; a number generates that many edits."""
    table, source = await experiment.table(), experiment.source
    if isinstance(edits, int):
        edits = made_edits(table, source, experiment.entries, edits, experiment.seed)
    varied: dict[Version, Variant] = {}
    for mode, edit in VERSIONS:
        # the same prompt is the same pass in both modes, so drift contains no decoder noise
        parent = varied["free", edit].ledger if mode == "fixed" else None
        varied[mode, edit] = await _varied(experiment, table, edits, mode, edit, parent)
    columns = {version: one.table.column(source) for version, one in varied.items()}
    hit = _hits(table.column(source), edits)
    _require_equal_off_target(columns["fixed", "repair"], columns["fixed", "corrupt"], hit, table)
    tables = {version: one.table for version, one in varied.items()}
    tables[AGAIN] = await _again(experiment, table, hit)
    return CounterfactualResult(
        side=experiment.side,
        source=source,
        edits=edits,
        rows=len(table),
        hits=int(hit.sum()),
        repaired=sum(one.repair not in experiment.entries for one in edits.values()),
        same={version: _same_ids(column, table.column(source)) for version, column in columns.items()},
        changed={version: one.changed for version, one in varied.items()},
        arms={
            arm: _worth(policy, table, tables, hit)
            for arm, policy in policies_using(experiment.space, source).items()
        },
    )


async def _varied(
    experiment: Experiment,
    table: Table,
    edits: Mapping[str, Edit],
    mode: str,
    edit: str,
    parent: Ledger | None,
) -> Variant:
    entries = [getattr(edits[e.id], edit) if e.id in edits else e for e in experiment.entries]
    recalls = original_recalls(table, experiment.source, entries) if mode == "fixed" else None
    title = f"{edit}, {mode} retrieval"
    return await experiment.vary(f"{edit}-{mode}", title, table, entries, recalls=recalls, parent=parent)


async def _again(experiment: Experiment, table: Table, hit: Bools) -> Table:
    """The table with its hits decoded again."""
    recalls = original_recalls(table, experiment.source, experiment.entries)
    hits = table.rows(hit.nonzero()[0])
    title = "original, decoded again"
    varied = await experiment.vary("again", title, hits, experiment.entries, recalls=recalls, again=True)
    before, fresh = table.column(experiment.source), varied.table.column(experiment.source)
    passes, right = list(before.passes), before.right.copy()
    right[hit] = fresh.right
    for place, row in zip(hit.nonzero()[0], fresh.passes, strict=True):
        passes[place] = row
    column = make_column(passes, right.tolist())
    return replace(table, columns={**table.columns, experiment.source: column})


def _worth(policy: Policy, table: Table, tables: Mapping[Version, Table], hit: Bools) -> EditWorth:
    base = Replayer(table).replay(policy).right
    rights = {version: Replayer(varied).replay(policy).right for version, varied in tables.items()}

    def change(after: Bools, before: Bools) -> Interval:
        return paired_interval(after.astype(float) - before, table.clusters, _draws())

    repaired, damaged = rights["fixed", "repair"], rights["fixed", "corrupt"]
    return EditWorth(
        policy=policy,
        original=share_of(base, table.clusters),
        right={version: share_of(right, table.clusters) for version, right in rights.items()},
        change={version: change(right, base) for version, right in rights.items()},
        drift={edit: change(rights["free", edit], rights["fixed", edit]) for edit in EDITS},
        hits=_contrast(repaired, damaged, hit, table),
        others=_contrast(repaired, damaged, ~hit, table),
        localised=_localised(repaired.astype(float) - damaged, hit, table.clusters),
    )


def _draws() -> np.random.Generator:
    """A generator with a fixed seed: equal answers get equal intervals."""
    return np.random.default_rng(0)


def _localised(difference: Floats, hit: Bools, clusters: Sequence[str]) -> float | None:
    """The randomisation test over clusters; rows of one task have the same recalls under every seed.

    If the content were worth nothing, repair and corrupt would be two draws from the same distribution,
    so the two may be swapped, cluster by cluster. Shuffling the hits instead would mistake the decoder's
    noise for an effect, since only the hits were decoded twice.
    """
    if hit.all() or not hit.any():
        return None
    sums, counts = by_task(difference, clusters)
    marked, _ = by_task(hit.astype(float), clusters)
    return randomisation_p_value(sums / counts, marked > 0, _draws())


def _hits(column: Column, edits: Mapping[str, Edit]) -> Bools:
    return np.array([any(recall.entry in edits for recall in row.recalls) for row in column.passes])


def _same_ids(column: Column, original: Column) -> float:
    pairs = zip(column.passes, original.passes, strict=True)
    return float(np.mean([[s.entry for s in a.recalls] == [s.entry for s in b.recalls] for a, b in pairs]))


def _require_equal_off_target(repair: Column, corrupt: Column, hit: Bools, table: Table) -> None:
    """Rows without an edited entry must have the same pass under both edits."""
    for place in (~hit).nonzero()[0]:
        one, other = repair.passes[place], corrupt.passes[place]
        same = repair.right[place] == corrupt.right[place]
        if not same or (one.prompt, one.text) != (other.prompt, other.text):
            raise HeedfulError(
                f"task {table.tasks[place]} recalled no edited entry but differs between repair and corrupt: "
                "the comparison is invalid"
            )


def _contrast(repaired: Bools, damaged: Bools, rows: Bools, table: Table) -> Contrast:
    helps, hurts = int((repaired & ~damaged & rows).sum()), int((~repaired & damaged & rows).sum())
    if not rows.any():
        return Contrast(rows=0, change=None, helps=0, hurts=0, p=None)
    clusters = [cluster for cluster, inside in zip(table.clusters, rows, strict=True) if inside]
    difference = (repaired.astype(float) - damaged)[rows]
    change, p = paired_interval(difference, clusters, _draws()), mcnemar_by_task(difference, clusters)
    return Contrast(rows=int(rows.sum()), change=change, helps=helps, hurts=hurts, p=p)
