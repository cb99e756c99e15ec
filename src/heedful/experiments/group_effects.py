"""Leave a group of entries out: decode the tasks that recalled them again, without the group.

Most prompts mix entries of a group with others. Their outcomes against no memory do not blame the group,
because the others may help as much as the group hurts. The same task with recall from the bank without the
group isolates its effect. For the whole bank, that is the pass without memory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from heedful.experiments.variant import Experiment, only, with_bank
from heedful.governance.evidence import ClusterOf, RecallOutcome, recall_outcomes
from heedful.governance.groups import LEAST_ENTRIES, GroupStanding, group_standings, named_groups
from heedful.types import Entry, Evidence, digest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEffects:
    groups: Sequence[GroupStanding]
    """The bank against no memory, every other group against the bank without it; the smallest first."""
    calls: int
    """Model calls made in this run; the other passes were already recorded."""


async def leave_groups_out(
    experiment: Experiment,
    bank: str,
    entries: Sequence[Entry],
    evidence: Sequence[Evidence],
    cluster_of: ClusterOf,
) -> GroupEffects:
    """The groups of a bank, each judged by the tasks of the evidence that recalled one of its entries."""
    outcomes = recall_outcomes(evidence, cluster_of)
    whole = [one for one in group_standings(bank, entries, evidence, cluster_of) if one.kind == "bank"]
    groups = {one.ids: one for one in whole}
    calls = 0
    for kind, name, members in named_groups(bank, entries):
        affected = _affected(members, outcomes)
        group = GroupStanding(kind=kind, name=name, entries=tuple(members), outcomes=affected, left_out=True)
        seen = {entry for one in affected for entry in one.entries}
        if kind == "bank" or len(seen) < LEAST_ENTRIES or group.ids in groups:
            continue
        before, extra_calls = await _without(experiment, group)
        effects = [
            replace(one, recalled={key: value - before[one.task] for key, value in one.recalled.items()})
            for one in affected
        ]
        groups[group.ids] = replace(group, outcomes=tuple(effects))
        calls += extra_calls
    return GroupEffects(groups=sorted(groups.values(), key=lambda one: len(one.entries)), calls=calls)


def _affected(members: Sequence[Entry], outcomes: Sequence[RecallOutcome]) -> tuple[RecallOutcome, ...]:
    """The first pass of each cluster that recalled a member; with the members only."""
    versions = {(entry.id, entry.digest) for entry in members}
    first: dict[str, RecallOutcome] = {}
    for outcome in outcomes:
        if recalled := {key: value for key, value in outcome.recalled.items() if key in versions}:
            first.setdefault(outcome.cluster, replace(outcome, recalled=recalled))
    return tuple(first.values())


async def _without(experiment: Experiment, group: GroupStanding) -> tuple[Mapping[str, float], int]:
    """By task, the effect against no memory of the bank without a group, and the number of calls."""
    source, side, seed = experiment.source, experiment.side, experiment.setup.study.seeds[0]
    versions = {(entry.id, entry.digest) for entry in group.entries}
    kept = [entry for entry in experiment.entries if (entry.id, entry.digest) not in versions]
    tasks = [outcome.task for outcome in group.outcomes]
    folder = experiment.space.folder / experiment.name / f"{source}-{digest_of(sorted(versions))[:12]}"
    ledger, calls = await experiment.record(
        folder,
        f"without {group.kind} {group.name}",
        only(with_bank(experiment.setup, source, kept), side, source),
        tasks,
        seeds=[seed],
    )
    effects = {}
    for task in tasks:
        row, plain = (ledger.passes[side, seed, name, task] for name in (source, "none"))
        effects[task] = float(row.right) - float(plain.right) if row.record.status == "decoded" else 0.0
    return effects, calls
