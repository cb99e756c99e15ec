"""Decide which groups and entries to retire, on evidence alone.

With groups, the error δ is split: one half for groups, one half for entries.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from heedful.governance.evidence import EntryStanding
from heedful.governance.group_review import GroupCondemnation, review_groups
from heedful.governance.groups import GroupStanding
from heedful.governance.judge import Judgement, judge_entries
from heedful.governance.terms import RetirementTerms
from heedful.types import Entry, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Condemnation:
    """A condemned entry: what happens to it, and why."""

    standing: EntryStanding
    judgement: Judgement
    """Of the entry, or of its group."""
    state: State
    reason: str
    group: str = ""
    """The condemned group that it goes with; empty: it is judged by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirementReview:
    going: Sequence[Condemnation]
    """First the entries of condemned groups, then those condemned by themselves, the most harmful first."""
    spared: Sequence[Condemnation] = field(default=())
    """Condemned, but protected, already in quarantine, beyond the share that may go at once, or perhaps
    blamed for the harm of a companion."""
    groups: Sequence[GroupCondemnation] = field(default=())
    """Condemned groups, the smallest first."""


def review(
    found: Sequence[EntryStanding], terms: RetirementTerms, groups: Sequence[GroupStanding] = ()
) -> RetirementReview:
    """Which groups and entries are removed under these terms."""
    delta = terms.delta / 2 if groups else terms.delta
    room = int(terms.max_share * sum(one.entry.live for one in found))
    condemned_groups = review_groups(groups, terms, delta, room)
    going = list(_members(found, condemned_groups, terms))
    gone = {one.standing.entry.id for one in going}
    room -= sum(one.standing.entry.state == "active" for one in going)
    rest = [one for one in found if one.entry.id not in gone and one.entry.state != "retired"]
    spared: list[Condemnation] = []
    for one, guilty in _condemned(rest, terms, delta):
        if why := _why_spared(one, guilty, terms, room):
            spared.append(replace(one, state=one.standing.entry.state, reason=f"{one.reason}; stays: {why}"))
        else:
            going.append(one)
            room -= one.standing.entry.state == "active"
    return RetirementReview(going=going, spared=spared, groups=condemned_groups)


def suspects(found: Sequence[EntryStanding], reviewed: RetirementReview) -> list[Entry]:
    """Active entries with more hurts than helps that are not condemned by their own outcomes yet, the worst
    first."""
    settled = {one.standing.entry.id for one in reviewed.going}
    settled |= {one.standing.entry.id for one in reviewed.spared if not one.standing.uncredited}
    negative = [one for one in found if one.entry.state == "active" and one.hurts > one.helps]
    ranked = sorted(negative, key=lambda one: (one.helps - one.hurts, one.entry.id))
    return [one.entry for one in ranked if one.entry.id not in settled]


def _members(
    found: Sequence[EntryStanding], groups: Sequence[GroupCondemnation], terms: RetirementTerms
) -> Iterator[Condemnation]:
    """The entries that go with a condemned group."""
    for standing in found:
        group = next((one for one in groups if one.going and standing.entry.id in one.group.ids), None)
        if group is not None and terms.moves(standing.entry):
            yield Condemnation(
                standing=standing,
                judgement=group.judgement,
                state=terms.state,
                reason=f"{group.title}: {group.reason}",
                group=group.title,
            )


def _condemned(
    found: Sequence[EntryStanding], terms: RetirementTerms, delta: float
) -> list[tuple[Condemnation, bool]]:
    """The condemned entries, the most harmful first, and whether their own outcomes condemn them."""
    present = judge_entries([one.utilities for one in found], terms.rule, delta)
    own = judge_entries([one.own for one in found], terms.rule, delta)
    pairs = [
        (
            Condemnation(
                standing=one, judgement=judgement, state=terms.state, reason=_reason(one, judgement)
            ),
            by_own,
        )
        for one, judgement, by_own in zip(found, present, (one.condemned for one in own), strict=True)
        if judgement.condemned
    ]
    return sorted(pairs, key=lambda pair: pair[0].judgement.rank)


def _reason(standing: EntryStanding, judgement: Judgement) -> str:
    if not standing.probes:
        return judgement.reason
    return f"{judgement.reason}; {standing.probes} of the tasks are probes, where recall did not choose it"


def _why_spared(one: Condemnation, guilty: bool, terms: RetirementTerms, room: int) -> str:
    """Why a condemned entry stays; empty: it goes."""
    standing, entry = one.standing, one.standing.entry
    if entry.state == "protected":
        return "protected"
    if entry.state == one.state:
        return "already in quarantine; a run without quarantine retires it"
    if terms.own_outcomes and not guilty:
        return _shared(standing, terms)
    if entry.state == "active" and room <= 0:
        return f"at most {terms.max_share:.0%} of a bank is removed at once"
    return ""


def _shared(standing: EntryStanding, terms: RetirementTerms) -> str:
    if not standing.uncredited:
        return "leave-one-out blames other entries for these outcomes"
    command = f"; {terms.credit_command} examines them" if terms.credit_command else ""
    return (
        f"it shares {standing.uncredited} of its turned answers with other entries, most with "
        f"{standing.companion}, and leave-one-out has not examined them{command}"
    )
