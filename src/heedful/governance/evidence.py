"""The effect of each entry, counted over distinct tasks.

Only the first observation of a task counts: the mean of repeated observations lets an entry wait for
a bad draw. Entries that are recalled together share one outcome. So a standing has two counts: all
outcomes that the entry was present at, and the outcomes that are its own.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from types import MappingProxyType

from heedful.governance.bounds import betting_interval
from heedful.types import Entry, Evidence

SURELY = 0.95
ClusterOf = Mapping[str, str]
"""From a task to its cluster of equal questions, which counts once; other tasks count by themselves."""
Credit = Mapping[tuple[str, str], bool]
"""From a task and an entry to whether leaving the entry out changes the outcome."""
UNCLUSTERED: ClusterOf = MappingProxyType({})
NO_CREDIT: Credit = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryStanding:
    """An entry with its effects, counted over distinct tasks."""

    entry: Entry
    uses: int
    """Observations; several may be of one task."""
    utilities: tuple[float, ...]
    """One per task, from -1 (hurt) to 1 (help)."""
    own: tuple[float, ...]
    """The same, but 0 where another entry was recalled too and leave-one-out does not blame this one."""
    uncredited: int = 0
    """Turned answers that the entry shares with others and that leave-one-out has not examined."""
    companion: str = ""
    """The entry that shares most of them."""
    probes: int = 0
    """How many of the tasks are probes: the entry was put into the prompt on purpose."""

    @property
    def tasks(self) -> int:
        return len(self.utilities)

    @property
    def helps(self) -> int:
        return sum(value > 0 for value in self.utilities)

    @property
    def hurts(self) -> int:
        return sum(value < 0 for value in self.utilities)

    @property
    def mean(self) -> float:
        return fmean(self.utilities) if self.utilities else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """95% interval of the mean utility, valid however often it is computed."""
        return betting_interval(self.utilities, SURELY) if self.utilities else (-1.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallOutcome:
    """The recalled entries of one pass, with their versions and its outcome."""

    task: str
    cluster: str
    recalled: Mapping[tuple[str, str], float]
    """From entry and version to the utility; entries recalled together share it."""

    @property
    def entries(self) -> frozenset[str]:
        return frozenset(entry for entry, _ in self.recalled)


def recall_outcomes(
    evidence: Sequence[Evidence], cluster_of: ClusterOf = UNCLUSTERED
) -> Sequence[RecallOutcome]:
    """The passes behind the evidence, in order; without decision ids, one for each task."""
    passes: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for seen in evidence:
        recalled = passes.setdefault((seen.task, seen.decision), {})
        recalled.setdefault((seen.entry, seen.version), seen.utility)
    return [
        RecallOutcome(task=task, cluster=cluster_of.get(task, task), recalled=recalled)
        for (task, _), recalled in passes.items()
    ]


def standings(
    entries: Sequence[Entry],
    evidence: Sequence[Evidence],
    *,
    cluster_of: ClusterOf = UNCLUSTERED,
    credit: Credit = NO_CREDIT,
    probes: Sequence[Evidence] = (),
) -> list[EntryStanding]:
    """The standing of every entry, in order; evidence about other versions does not count."""
    uses = Counter((seen.entry, seen.version) for seen in (*evidence, *probes))
    recalled = _first_outcomes(recall_outcomes(evidence, cluster_of))
    probed = _first_outcomes([one for seen in probes for one in recall_outcomes([seen], cluster_of)])
    found = []
    for entry in entries:
        key = (entry.id, entry.digest)
        used = recalled.get(key, {})
        added = {c: one for c, one in probed.get(key, {}).items() if c not in used}
        found.append(_standing(entry, uses[key], list(used.values()), list(added.values()), credit))
    return found


def _first_outcomes(
    outcomes: Sequence[RecallOutcome],
) -> dict[tuple[str, str], dict[str, RecallOutcome]]:
    """By entry and version, the first outcome in each cluster of tasks."""
    first: dict[tuple[str, str], dict[str, RecallOutcome]] = {}
    for outcome in outcomes:
        for key in outcome.recalled:
            first.setdefault(key, {}).setdefault(outcome.cluster, outcome)
    return first


def _standing(
    entry: Entry, uses: int, used: list[RecallOutcome], probed: list[RecallOutcome], credit: Credit
) -> EntryStanding:
    key = (entry.id, entry.digest)
    outcomes = used + probed
    utilities = tuple(outcome.recalled[key] for outcome in outcomes)
    alone = [len(outcome.entries) == 1 for outcome in outcomes]
    credited = [credit.get((outcome.task, entry.id)) for outcome in outcomes]
    own = tuple(
        value if by_itself or carried else 0.0
        for value, by_itself, carried in zip(utilities, alone, credited, strict=True)
    )
    open_cases = [
        outcome
        for outcome, value, by_itself, carried in zip(outcomes, utilities, alone, credited, strict=True)
        if value and not by_itself and carried is None
    ]
    others = Counter(name for outcome in open_cases for name in sorted(outcome.entries - {entry.id}))
    return EntryStanding(
        entry=entry,
        uses=uses,
        utilities=utilities,
        own=own,
        uncredited=len(open_cases),
        companion=others.most_common(1)[0][0] if others else "",
        probes=len(probed),
    )


def by_harm(found: Sequence[EntryStanding]) -> list[EntryStanding]:
    """The most harmful first."""
    return sorted(found, key=lambda one: (sum(one.utilities), -one.hurts, one.entry.id))
