"""Decide which entries to retire, on evidence alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from heedful.errors import UsageError
from heedful.governance.bounds import rule_named
from heedful.governance.evidence import EntryStanding
from heedful.types import State


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirementTerms:
    """How entries are judged."""

    rule: str = "betting"
    confidence: float = 0.95
    max_share: float = 0.25
    """At most this share of a bank's live entries is removed at once."""
    quarantine: bool = False
    """Condemned entries are set aside; a later review without quarantine retires them."""

    def __post_init__(self) -> None:
        rule_named(self.rule)
        if not 0 < self.confidence < 1:
            raise UsageError(f"a confidence must be between 0 and 1, not {self.confidence}")
        if not 0 < self.max_share <= 1:
            raise UsageError(f"the share that may go must be above 0 and at most 1, not {self.max_share}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Condemnation:
    """A condemned entry: what happens to it, and why."""

    standing: EntryStanding
    bound: float
    """Upper bound of its mean utility at the required confidence."""
    state: State
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirementReview:
    going: Sequence[Condemnation]
    spared: Sequence[Condemnation] = field(default=())
    """Condemned, but protected, already in quarantine, or beyond the share that may go at once."""


def review(found: Sequence[EntryStanding], terms: RetirementTerms) -> RetirementReview:
    """Which entries are removed under these terms, the most harmful first."""
    live = [one for one in found if one.entry.live]
    judged = [_judged(one, terms) for one in found if one.entry.state != "retired"]
    condemned = sorted((one for one in judged if one.bound < 0), key=lambda one: one.bound)
    room = int(terms.max_share * len(live))
    going: list[Condemnation] = []
    spared: list[Condemnation] = []
    for one in condemned:
        if one.standing.entry.state == "protected":
            spared.append(_spared(one, "protected"))
        elif one.standing.entry.state == one.state:
            spared.append(_spared(one, "already in quarantine; a run without quarantine retires it"))
        elif one.standing.entry.state == "active" and room == 0:
            spared.append(_spared(one, f"at most {terms.max_share:.0%} of a bank is removed at once"))
        else:
            going.append(one)
            room -= one.standing.entry.state == "active"
    return RetirementReview(going=going, spared=spared)


def _judged(standing: EntryStanding, terms: RetirementTerms) -> Condemnation:
    bound = rule_named(terms.rule)(standing.utilities, 1 - terms.confidence)
    why = (
        f"{terms.rule}: mean utility {standing.mean:+.2f} over {standing.tasks} tasks "
        f"({standing.helps} helps, {standing.hurts} hurts), "
        f"below {bound:+.2f} with {terms.confidence:.0%} confidence"
    )
    state: State = "quarantined" if terms.quarantine else "retired"
    return Condemnation(standing=standing, bound=bound, state=state, reason=why)


def _spared(one: Condemnation, why: str) -> Condemnation:
    return Condemnation(
        standing=one.standing,
        bound=one.bound,
        state=one.standing.entry.state,
        reason=f"{one.reason}; stays: {why}",
    )
