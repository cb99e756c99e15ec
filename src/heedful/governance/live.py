"""Governance of a bank in use: quarantine first, then retirement or return on further evidence."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from heedful.errors import UsageError
from heedful.governance.evidence import EntryStanding, standings
from heedful.governance.groups import GroupStanding, group_standings
from heedful.governance.retire import Condemnation, RetirementReview, review
from heedful.governance.terms import RetirementTerms
from heedful.ports import Store
from heedful.types import Grounds, Mark, StateChange

GOVERNANCE = "live governance"
"""Who changes states if nobody is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveReview:
    """The state changes of one round of live governance."""

    marks: tuple[Mark, ...]
    spared: Sequence[Condemnation]
    """Condemned entries that stay as they are."""


async def govern_live(
    store: Store,
    bank: str,
    terms: RetirementTerms = RetirementTerms(own_outcomes=True),
    *,
    by: str = GOVERNANCE,
    apply: bool = True,
) -> LiveReview:
    """Judge a bank by the evidence in its store, and change states in one transaction."""
    entries, evidence = await store.entries(bank), await store.evidence(bank)
    reviewed = live_review(
        standings(entries, evidence),
        group_standings(bank, entries, evidence),
        await store.audit(bank),
        terms,
        by,
    )
    if apply and reviewed.marks:
        await store.mark(bank, reviewed.marks)
    return reviewed


def live_review(
    found: Sequence[EntryStanding],
    groups: Sequence[GroupStanding],
    audit: Sequence[StateChange],
    terms: RetirementTerms,
    by: str = GOVERNANCE,
) -> LiveReview:
    """What one round changes.

    A condemned entry goes into quarantine, where it is not recalled. An entry that a review put there is
    retired if evidence has come in since and still condemns it, and restored if the evidence no longer
    does. Protected entries, and those that a person put into quarantine, stay as they are.
    """
    if terms.rule != "betting":
        raise UsageError(
            f"live governance looks again and again, which the rule {terms.rule} does not allow: use betting"
        )
    entering = review(found, _with_room(terms, found), groups)
    judged = review(found, replace(terms, quarantine=False, max_share=1.0), groups)
    marks = [
        Mark(
            entry=one.standing.entry.id,
            state="quarantined",
            reason=one.reason,
            by=by,
            grounds=grounds_of(one, entering, terms.rule),
        )
        for one in entering.going
        if one.standing.entry.state == "active"
    ]
    marks += _from_quarantine(found, judged, _quarantined_by_review(audit), terms.rule, by)
    return LiveReview(marks=tuple(marks), spared=entering.spared)


def grounds_of(condemned: Condemnation, reviewed: RetirementReview, rule: str) -> Grounds:
    """The evidence behind a condemnation: the group's if the entry goes with its group."""
    group = next((one for one in reviewed.groups if condemned.group and one.title == condemned.group), None)
    utilities = condemned.standing.utilities if group is None else group.utilities
    return Grounds(
        rule=rule,
        tasks=len(utilities),
        helps=sum(value > 0 for value in utilities),
        hurts=sum(value < 0 for value in utilities),
        bound=condemned.judgement.bound,
        p_value=condemned.judgement.p_value,
        group=condemned.group,
    )


def _with_room(terms: RetirementTerms, found: Sequence[EntryStanding]) -> RetirementTerms:
    """Terms under which the quarantine never holds more than the allowed share of the bank."""
    states = [one.entry.state for one in found]
    live, waiting = sum(one.entry.live for one in found), states.count("quarantined")
    room = max(0, int(terms.max_share * (live + waiting)) - waiting)
    return replace(terms, quarantine=True, max_share=min(1.0, (room + 0.5) / max(1, live)))


def _quarantined_by_review(audit: Sequence[StateChange]) -> Mapping[str, Grounds]:
    """By entry in quarantine, the evidence on which a review put it there."""
    last = {change.entry: change for change in audit}
    return {
        entry: change.grounds
        for entry, change in last.items()
        if change.state == "quarantined" and change.grounds is not None
    }


def _from_quarantine(
    found: Sequence[EntryStanding],
    judged: RetirementReview,
    waiting: Mapping[str, Grounds],
    rule: str,
    by: str,
) -> Iterator[Mark]:
    condemned = {one.standing.entry.id: one for one in judged.going}
    undecided = {one.standing.entry.id for one in judged.spared}
    for standing in found:
        id = standing.entry.id
        if id not in waiting or standing.entry.state != "quarantined" or id in undecided:
            continue
        if id not in condemned:
            yield Mark(entry=id, state="active", reason="the evidence no longer condemns it", by=by)
            continue
        if _tasks_now(standing, judged, waiting[id].group) > waiting[id].tasks:
            grounds = grounds_of(condemned[id], judged, rule)
            yield Mark(entry=id, state="retired", reason=condemned[id].reason, by=by, grounds=grounds)


def _tasks_now(standing: EntryStanding, judged: RetirementReview, group: str) -> int:
    """The number of tasks behind a new judgement of the entry, or of the group that it went with."""
    if not group:
        return standing.tasks
    return next((len(one.utilities) for one in judged.groups if one.title == group), 0)
