"""What an entry's content is worth: the same study with some entries repaired, or corrupted.

A free rerun recalls again, so that an edit also changes which entries are found (drift). Fixed
retrieval keeps the recalls of the original run and changes only what they say, which isolates the
effect of the content (the paper's eq. 11). Under fixed retrieval, a row that recalled no edited
entry has the same prompt under every edit: that is checked on every run.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from heedful.errors import HeedfulError, UsageError
from heedful.experiments.derive import Experiment, policy_for
from heedful.governance.damage import corrupted
from heedful.protocol.replay import Replayer
from heedful.protocol.table import Bools, Column, Floats, Table
from heedful.stats.arrays import by_task
from heedful.stats.bootstrap import paired_interval
from heedful.stats.intervals import Interval
from heedful.stats.mcnemar import mcnemar_by_task
from heedful.stats.randomisation import randomisation_p_value
from heedful.types import Entry, Policy, Recall, Side

EDITS = ("repair", "corrupt")
MODES = ("free", "fixed")


class EditLine(msgspec.Struct, forbid_unknown_fields=True):
    """An edit as it stands in a file: an entry's id, and what it should say instead."""

    entry: str
    repair: str = ""
    """Empty: as it is."""
    corrupt: str = ""
    """Empty: damaged by heedful."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """An entry in its repaired and in its corrupted version."""

    repair: Entry
    corrupt: Entry


def read_edits(file: Path, entries: Sequence[Entry], seed: int) -> dict[str, Edit]:
    """The edits of a JSONL file; of an exemplar the worked answer is edited."""
    known = {entry.id: entry for entry in entries}
    edits: dict[str, Edit] = {}
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the edits {file} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            read = msgspec.json.decode(line, type=EditLine)
        except msgspec.MsgspecError as error:
            raise UsageError(f"{file} line {number} is not an edit: {error}") from error
        if read.entry not in known:
            raise UsageError(f"{file} line {number} edits {read.entry!r}, which is not in the bank")
        entry = known[read.entry]
        edits[entry.id] = Edit(
            repair=_saying(entry, read.repair) if read.repair else entry,
            corrupt=_saying(entry, read.corrupt) if read.corrupt else corrupted(entry, seed),
        )
    if not edits:
        raise UsageError(f"{file} holds no edits")
    return edits


def made_edits(table: Table, source: str, entries: Sequence[Entry], count: int, seed: int) -> dict[str, Edit]:
    """Damage for the entries that were recalled most; their repair is what they say already."""
    seen = Counter(recall.entry for row in table.column(source).passes for recall in row.recalls)
    edits: dict[str, Edit] = {}
    for entry in sorted(entries, key=lambda entry: (-seen[entry.id], entry.id)):
        if len(edits) == count or not seen[entry.id]:
            break
        try:
            edits[entry.id] = Edit(repair=entry, corrupt=corrupted(entry, seed))
        except UsageError:
            continue
    if not edits:
        raise UsageError(f"no entry that {source} recalled can be damaged; give --edits FILE")
    return edits


def _saying(entry: Entry, text: str) -> Entry:
    return replace(entry, response=text) if entry.kind == "exemplar" else replace(entry, text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Accuracy under an edit against the original bank."""

    accuracy: float
    change: Interval
    same: float
    """Share of rows whose recalled ids are the original ones, in order."""
    calls: int
    """Model calls it took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Repair minus corrupt on some rows."""

    rows: int
    change: Interval | None
    helps: int
    hurts: int
    p: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterfactual:
    policy: Policy
    """Whose answers are counted."""
    side: Side
    source: str
    edits: Mapping[str, Edit]
    original: float
    """Accuracy with the bank as it is."""
    effects: Mapping[tuple[str, str], Effect]
    """By mode and edit."""
    drift: Mapping[str, float]
    """By edit, what a free rerun changes beyond the content: the second term of eq. 11."""
    hits: Contrast
    """Rows whose frozen recalls contain an edited entry."""
    others: Contrast
    localised: float | None
    """p-value of the randomisation test: is repair minus corrupt larger on the hits?"""


async def counterfactual(asked: Experiment, edits: Mapping[str, Edit] | int) -> Counterfactual:
    """Record what the edits change, and compare; a number asks for so many edits to be made."""
    side, source, policy = asked.side, asked.source, policy_for(asked.space, asked.source)
    table = asked.table()
    if isinstance(edits, int):
        edits = made_edits(table, source, asked.entries, edits, asked.seed)
    base = Replayer(table).replay(policy).right
    hit = _hits(table.column(source), edits)
    columns: dict[tuple[str, str], Column] = {}
    effects: dict[tuple[str, str], Effect] = {}
    rights: dict[tuple[str, str], Bools] = {}
    rng = np.random.default_rng(0)
    for edit in EDITS:
        entries = [getattr(edits[e.id], edit) if e.id in edits else e for e in asked.entries]
        fixed = original_recalls(table, source, entries)
        for mode in MODES:
            recalls = fixed if mode == "fixed" else None
            title = f"{edit}, {mode} retrieval"
            varied = await asked.vary(f"{edit}-{mode}", title, table, entries, recalls=recalls)
            column = columns[mode, edit] = varied.table.column(source)
            right = rights[mode, edit] = Replayer(varied.table).replay(policy).right
            effects[mode, edit] = Effect(
                accuracy=float(right.mean()),
                change=paired_interval(right.astype(float) - base, table.tasks, rng),
                same=_same_ids(column, table.column(source)),
                calls=varied.calls,
            )
    _require_equal_off_target(columns["fixed", "repair"], columns["fixed", "corrupt"], hit, table)
    repaired, damaged = rights["fixed", "repair"], rights["fixed", "corrupt"]
    difference = repaired.astype(float) - damaged
    return Counterfactual(
        policy=policy,
        side=side,
        source=source,
        edits=edits,
        original=float(base.mean()),
        effects=effects,
        drift={
            edit: effects["free", edit].change.value - effects["fixed", edit].change.value for edit in EDITS
        },
        hits=_contrast(repaired, damaged, hit, table, rng),
        others=_contrast(repaired, damaged, ~hit, table, rng),
        localised=_localised(difference, hit, table.tasks, rng),
    )


def _localised(
    difference: Floats, hit: Bools, tasks: Sequence[str], rng: np.random.Generator
) -> float | None:
    """The randomisation test over tasks; rows of one task have the same recalls under every seed."""
    if hit.all() or not hit.any():
        return None
    sums, counts = by_task(difference, tasks)
    marked, _ = by_task(hit.astype(float), tasks)
    return randomisation_p_value(sums / counts, marked > 0, rng)


def _hits(column: Column, edits: Mapping[str, Edit]) -> Bools:
    return np.array([any(seen.entry in edits for seen in row.recalls) for row in column.passes])


def original_recalls(table: Table, source: str, entries: Sequence[Entry]) -> Mapping[str, Sequence[Recall]]:
    """By task, the entries that the study recalled, as they are now."""
    by_id = {entry.id: entry for entry in entries}
    lost = {seen.entry for row in table.column(source).passes for seen in row.recalls} - set(by_id)
    if lost:
        raise UsageError(
            f"the study recalled {', '.join(sorted(lost)[:3])} from {source}, which its bank no longer has: "
            "run heedful study record"
        )
    return {
        task: tuple(Recall(entry=by_id[seen.entry], score=seen.score) for seen in row.recalls)
        for task, row in zip(table.tasks, table.column(source).passes, strict=True)
    }


def _same_ids(column: Column, original: Column) -> float:
    pairs = zip(column.passes, original.passes, strict=True)
    return float(np.mean([[s.entry for s in a.recalls] == [s.entry for s in b.recalls] for a, b in pairs]))


def _require_equal_off_target(repair: Column, corrupt: Column, hit: Bools, table: Table) -> None:
    """Rows without an edited entry must be the same pass under both edits."""
    for place in (~hit).nonzero()[0]:
        one, other = repair.passes[place], corrupt.passes[place]
        if (one.prompt, one.text, one.right) != (other.prompt, other.text, other.right):
            raise HeedfulError(
                f"task {table.tasks[place]} recalled no edited entry but differs between repair and corrupt: "
                "the comparison is void"
            )


def _contrast(
    repaired: Bools, damaged: Bools, rows: Bools, table: Table, rng: np.random.Generator
) -> Contrast:
    helps, hurts = int((repaired & ~damaged & rows).sum()), int((~repaired & damaged & rows).sum())
    if not rows.any():
        return Contrast(rows=0, change=None, helps=0, hurts=0, p=None)
    tasks = [task for task, inside in zip(table.tasks, rows, strict=True) if inside]
    difference = (repaired.astype(float) - damaged)[rows]
    change, p = paired_interval(difference, tasks, rng), mcnemar_by_task(difference, tasks)
    return Contrast(rows=int(rows.sum()), change=change, helps=helps, hurts=hurts, p=p)
