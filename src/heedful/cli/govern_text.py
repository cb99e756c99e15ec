"""What `heedful govern` prints: condemned groups first, then entries."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from heedful.cli.bank_evidence import group_fields, standing_fields
from heedful.cli.output import counted, result, say

if TYPE_CHECKING:
    from heedful.governance.group_review import GroupCondemnation
    from heedful.governance.live import LiveReview
    from heedful.governance.retire import Condemnation, RetirementReview
    from heedful.governance.terms import RetirementTerms


def review_fields(reviewed: "RetirementReview") -> dict[str, Any]:
    """A review as JSON."""
    return {
        "groups": [_group_fields(one) for one in reviewed.groups],
        "going": [_fields(one) for one in reviewed.going],
        "spared": [_fields(one) for one in reviewed.spared],
    }


def print_review(reviewed: "RetirementReview", terms: "RetirementTerms", bank: str, apply: bool) -> None:
    console = result()

    def show(title: str, stays: bool, text: str, reason: str) -> None:
        verb = "stays" if stays else terms.state if apply else f"would be {terms.state}"
        console.print(f"{title} {verb}: {text}", markup=False, soft_wrap=True)
        console.print(f"  {reason}", markup=False, soft_wrap=True)

    for group in reviewed.groups:
        show(
            group.title, not group.going, counted(len(group.group.entries), "entry", "entries"), group.reason
        )
    for one in reviewed.going:
        if not one.group:
            show(one.standing.entry.id, False, one.standing.entry.text, one.reason)
    for one in reviewed.spared:
        show(one.standing.entry.id, True, one.standing.entry.text, one.reason)
    if not reviewed.going:
        console.print(f"no entry of bank {bank} needs to be retired", markup=False, soft_wrap=True)
    elif apply:
        say(f"heedful bank restore ENTRY --bank {bank} restores an entry")
    else:
        say("nothing was changed; use --apply to apply the changes")


def live_fields(reviewed: "LiveReview", bank: str, rule: str, applied: bool) -> dict[str, Any]:
    """A round of live governance as JSON."""
    return {
        "bank": bank,
        "rule": rule,
        "applied": applied,
        "changes": [asdict(mark) for mark in reviewed.marks],
        "spared": [_fields(one) for one in reviewed.spared],
    }


def print_live(reviewed: "LiveReview", bank: str, applied: bool) -> None:
    console = result()
    for mark in reviewed.marks:
        verb = mark.state if applied else f"would be {mark.state}"
        console.print(f"{mark.entry} {verb}: {mark.reason}", markup=False, soft_wrap=True)
    for one in reviewed.spared:
        console.print(f"{one.standing.entry.id} stays: {one.reason}", markup=False, soft_wrap=True)
    if not reviewed.marks:
        console.print(f"no entry of bank {bank} changes its state", markup=False, soft_wrap=True)
    elif not applied:
        say("nothing was changed; use --apply to apply the changes")


def _group_fields(one: "GroupCondemnation") -> dict[str, Any]:
    return {
        **group_fields(one.group, one.utilities),
        "against": "the bank without it" if one.group.left_out else "no memory",
        "bound": one.judgement.bound,
        "p_value": one.judgement.p_value,
        "going": one.going,
        "reason": one.reason,
    }


def _fields(condemned: "Condemnation") -> dict[str, Any]:
    standing = condemned.standing
    return {
        **standing_fields(standing),
        "bound": condemned.judgement.bound,
        "p_value": condemned.judgement.p_value,
        "to": condemned.state,
        "reason": condemned.reason,
        "group": condemned.group,
        "uncredited": standing.uncredited,
        "companion": standing.companion,
        "probes": standing.probes,
    }
