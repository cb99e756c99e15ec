"""How groups share their error, and the share of a bank that may go."""

import pytest

from heedful import new_entry
from heedful.governance.evidence import RecallOutcome
from heedful.governance.group_review import group_shares, review_groups
from heedful.governance.groups import GroupKind, GroupStanding
from heedful.governance.terms import RetirementTerms
from heedful.types import Entry

ENTRIES = [new_entry(f"e{n}", kind="rule", id=f"e{n}") for n in range(8)]


def group(kind: GroupKind, name: str, entries: list[Entry], hurts: int = 0) -> GroupStanding:
    """A group whose entries hurt in turn."""
    outcomes = [
        RecallOutcome(
            task=f"{name}{n}",
            cluster=f"{name}{n}",
            recalled={(entries[n % len(entries)].id, entries[n % len(entries)].digest): -1.0},
        )
        for n in range(hurts)
    ]
    return GroupStanding(kind=kind, name=name, entries=tuple(entries), outcomes=tuple(outcomes))


def test_kinds_share_the_error_evenly_and_so_do_the_groups_of_a_kind() -> None:
    tags = [group("tag", f"t{n}", ENTRIES[n : n + 2]) for n in range(5)]
    shares = group_shares([*tags, group("bank", "mine", ENTRIES)], 0.02)
    assert shares == pytest.approx([0.002] * 5 + [0.01])
    assert sum(shares) == pytest.approx(0.02)


def test_entries_of_two_groups_take_room_once() -> None:
    first = group("tag", "small", ENTRIES[:2], hurts=9)
    second = group("tag", "large", ENTRIES[1:4], hurts=40)
    terms = RetirementTerms(max_share=1)
    going = [one.going for one in review_groups([first, second], terms, 0.025, room=4)]
    assert going == [True, True]
    assert [one.going for one in review_groups([first, second], terms, 0.025, room=3)] == [True, False]


def test_a_condemned_group_that_stays_still_explains_the_harm() -> None:
    inner, bank = group("tag", "small", ENTRIES[:2], hurts=9), group("bank", "mine", ENTRIES[:2], hurts=9)
    found = review_groups([inner, bank], RetirementTerms(max_share=1), 0.025, room=1)
    assert [(one.title, one.going) for one in found] == [("tag small", False)]
