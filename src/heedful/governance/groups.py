"""Groups of entries that are judged as a whole, before single entries.

An entry is recalled on few tasks, its bank on many: a group gathers enough turned answers long before
any of its entries does. Groups are the bank, the entries with the same `source`, with the same author
(the tag `author:NAME`), and with the same tag.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from heedful.governance.evidence import UNCLUSTERED, ClusterOf, RecallOutcome, recall_outcomes
from heedful.types import Entry, Evidence

GroupKind = Literal["bank", "source", "author", "tag"]
AUTHOR = "author:"
"""A tag that begins so names who wrote the entry."""
LEAST_ENTRIES = 2
"""A group is judged if this many of its entries were recalled; a single entry is judged as an entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStanding:
    """A group of entries with the outcomes of its own passes."""

    kind: GroupKind
    name: str
    entries: tuple[Entry, ...]
    outcomes: tuple[RecallOutcome, ...]
    """Passes that recalled entries of the group and no other, the first in each cluster of tasks. If the
    group was left out: passes that recalled any of its entries."""
    left_out: bool = False
    """Whether utilities compare with recall from the bank without the group, instead of no memory."""

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(entry.id for entry in self.entries)

    def utilities(self, blamed: frozenset[str] = frozenset()) -> tuple[float, ...]:
        """One per task, without tasks that recalled an entry that is blamed already."""
        return tuple(
            next(iter(outcome.recalled.values())) for outcome in self.outcomes if not outcome.entries & blamed
        )


def group_standings(
    bank: str,
    entries: Sequence[Entry],
    evidence: Sequence[Evidence],
    cluster_of: ClusterOf = UNCLUSTERED,
) -> list[GroupStanding]:
    """The groups of a bank with evidence about at least two of their entries, the smallest first.

    Groups with the same entries are one group, with the name of the wider kind. A task counts for a
    group only if every entry in its prompt belongs to the group.
    """
    outcomes = recall_outcomes(evidence, cluster_of)
    groups: dict[frozenset[str], GroupStanding] = {}
    for kind, name, members in named_groups(bank, entries):
        own = _own_outcomes(members, outcomes)
        if len({entry for outcome in own for entry in outcome.entries}) >= LEAST_ENTRIES:
            group = GroupStanding(kind=kind, name=name, entries=tuple(members), outcomes=own)
            groups.setdefault(group.ids, group)
    return sorted(groups.values(), key=lambda group: len(group.entries))


def named_groups(bank: str, entries: Sequence[Entry]) -> Iterator[tuple[GroupKind, str, list[Entry]]]:
    """The groups of the entries that are not retired, the widest kind first."""
    entries = [entry for entry in entries if entry.state != "retired"]
    yield "bank", bank, entries
    for name in sorted({entry.source for entry in entries} - {""}):
        yield "source", name, [entry for entry in entries if entry.source == name]
    tags = sorted({tag for entry in entries for tag in entry.tags}, key=_author_first)
    for tag in tags:
        kind: GroupKind = "author" if tag.startswith(AUTHOR) else "tag"
        yield kind, tag.removeprefix(AUTHOR), [entry for entry in entries if tag in entry.tags]


def _author_first(tag: str) -> tuple[bool, str]:
    return not tag.startswith(AUTHOR), tag


def _own_outcomes(members: Sequence[Entry], outcomes: Sequence[RecallOutcome]) -> tuple[RecallOutcome, ...]:
    """The first pass of each cluster that recalled members only, in their current versions."""
    versions = {(entry.id, entry.digest) for entry in members}
    first: dict[str, RecallOutcome] = {}
    for outcome in outcomes:
        if outcome.recalled.keys() <= versions:
            first.setdefault(outcome.cluster, outcome)
    return tuple(first.values())
