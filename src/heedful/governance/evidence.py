"""What the evidence says about each entry."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from heedful.governance.bounds import betting_interval
from heedful.types import Entry, Evidence

SURELY = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryStanding:
    """An entry with its effects, counted over distinct tasks."""

    entry: Entry
    uses: int
    """Observations; several may be of one task."""
    utilities: tuple[float, ...]
    """One per task: the mean of its observations, from -1 (hurt) to 1 (help)."""
    low: float
    high: float
    """95% interval of the mean utility, valid however often it is computed."""

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


def standings(entries: Sequence[Entry], evidence: Sequence[Evidence]) -> list[EntryStanding]:
    """The standing of every entry, in order; evidence about other versions does not count."""
    seen: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in evidence:
        seen[one.entry, one.version][one.task].append(one.utility)
    return [_standing(entry, seen.get((entry.id, entry.digest), {})) for entry in entries]


def _standing(entry: Entry, by_task: dict[str, list[float]]) -> EntryStanding:
    utilities = tuple(fmean(values) for values in by_task.values())
    low, high = betting_interval(utilities, SURELY) if utilities else (-1.0, 1.0)
    uses = sum(len(values) for values in by_task.values())
    return EntryStanding(entry=entry, uses=uses, utilities=utilities, low=low, high=high)


def by_harm(found: Sequence[EntryStanding]) -> list[EntryStanding]:
    """The most harmful first."""
    return sorted(found, key=lambda one: (sum(one.utilities), -one.hurts, one.entry.id))
