from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from heedful import UsageError, new_entry
from heedful.governance.evidence import EntryStanding, standings
from heedful.governance.groups import GroupStanding, group_standings
from heedful.governance.retire import RetirementReview, review, suspects
from heedful.governance.terms import RetirementTerms
from heedful.types import Entry, Evidence, State

GOOD, BAD, WORSE = (new_entry(text, kind="rule", id=text) for text in ("good", "bad", "worse"))


def seen(entry: Entry, *utilities: float) -> list[Evidence]:
    """Tasks that recalled this entry alone."""
    return [
        Evidence(entry=entry.id, version=entry.digest, task=f"{entry.id}{n}", utility=value)
        for n, value in enumerate(utilities)
    ]


def together(entries: Sequence[Entry], *utilities: float) -> list[Evidence]:
    return [
        Evidence(entry=entry.id, version=entry.digest, task=f"both{n}", utility=value)
        for n, value in enumerate(utilities)
        for entry in entries
    ]


EVIDENCE = [
    *seen(GOOD, *[1.0] * 10, *[-1.0] * 3),
    *seen(BAD, *[-1.0] * 12, *[0.0] * 10),
    *seen(WORSE, *[-1.0] * 20),
]


def marked(entry: Entry, state: State) -> Entry:
    return replace(entry, state=state)


def ids(reviewed: RetirementReview) -> tuple[list[str], list[str]]:
    return [one.standing.entry.id for one in reviewed.going], [
        one.standing.entry.id for one in reviewed.spared
    ]


def test_condemned_entries_go_and_the_reason_is_told() -> None:
    found = review(standings([GOOD, BAD, WORSE], EVIDENCE), RetirementTerms(max_share=1))
    assert [(one.standing.entry.id, one.state) for one in found.going] == [
        ("worse", "retired"),
        ("bad", "retired"),
    ]
    assert "20 tasks (0 helps, 20 hurts)" in found.going[0].reason
    assert found.spared == []


def test_protected_entries_never_go() -> None:
    found = review(standings([GOOD, marked(BAD, "protected"), WORSE], EVIDENCE), RetirementTerms(max_share=1))
    assert ids(found) == (["worse"], ["bad"])
    assert "protected" in found.spared[0].reason


def test_at_most_a_share_of_the_bank_goes_at_once_the_worst_first() -> None:
    found = review(standings([GOOD, BAD, WORSE], EVIDENCE), RetirementTerms(max_share=0.34))
    assert ids(found) == (["worse"], ["bad"])
    assert "34%" in found.spared[0].reason


def test_quarantine_sets_aside_and_only_a_review_without_it_retires() -> None:
    found = standings([GOOD, marked(BAD, "quarantined"), WORSE], EVIDENCE)
    aside = review(found, RetirementTerms(max_share=1, quarantine=True))
    assert [(one.standing.entry.id, one.state) for one in aside.going] == [("worse", "quarantined")]
    assert "already in quarantine" in aside.spared[0].reason
    gone = review(found, RetirementTerms(max_share=1))
    assert {(one.standing.entry.id, one.state) for one in gone.going} == {
        ("worse", "retired"),
        ("bad", "retired"),
    }


def test_what_is_retired_is_not_judged_again() -> None:
    assert review(standings([marked(WORSE, "retired")], EVIDENCE), RetirementTerms()).going == []


@pytest.mark.parametrize("wrong", [{"rule": "luck"}, {"confidence": 1.0}, {"max_share": 0.0}])
def test_terms_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        RetirementTerms(**wrong)


OWN = RetirementTerms(max_share=1, own_outcomes=True, credit_command="heedful study credit s")


def test_an_entry_that_was_never_alone_waits_for_leave_one_out() -> None:
    evidence = together([BAD, GOOD], *[-1.0] * 10)
    found = review(standings([BAD, GOOD], evidence), OWN)
    assert ids(found) == ([], ["bad", "good"])
    assert found.spared[0].reason.endswith(
        "stays: it shares 10 of its turned answers with other entries, most with good, and leave-one-out has "
        "not examined them; heedful study credit s examines them"
    )
    credit = {(f"both{n}", entry): entry == "bad" for n in range(10) for entry in ("bad", "good")}
    found = review(standings([BAD, GOOD], evidence, credit=credit), OWN)
    assert ids(found) == (["bad"], ["good"])
    assert found.spared[0].reason.endswith("leave-one-out blames other entries for these outcomes")


def test_outcomes_of_its_own_suffice_without_leave_one_out() -> None:
    evidence = [*together([BAD, GOOD], *[-1.0] * 10), *seen(BAD, *[-1.0] * 6)]
    assert ids(review(standings([BAD, GOOD], evidence), OWN)) == (["bad"], ["good"])


def test_suspects_have_more_hurts_than_helps_but_not_enough() -> None:
    mild = seen(GOOD, -1.0, 0.0, -1.0, 1.0)
    found = standings([GOOD, BAD, WORSE], [*mild, *seen(BAD, 1.0, -1.0), *seen(WORSE, *[-1.0] * 20)])
    assert [one.id for one in suspects(found, review(found, OWN))] == ["good"]
    shared = standings([BAD, GOOD], together([BAD, GOOD], *[-1.0] * 10))
    assert [one.id for one in suspects(shared, review(shared, OWN))] == ["bad", "good"]


def test_a_probed_entry_says_so() -> None:
    probes = [replace(one, task=f"probe {one.task}") for one in seen(BAD, *[-1.0] * 6)]
    found = review(standings([BAD], seen(BAD, -1.0), probes=probes), OWN)
    assert "7 tasks (0 helps, 7 hurts)" in found.going[0].reason
    assert "6 of the tasks are probes" in found.going[0].reason


WIKI = [new_entry(f"w{n}", kind="rule", id=f"w{n}", source="wiki") for n in range(4)]
CHAT = [new_entry(f"c{n}", kind="rule", id=f"c{n}", source="chat") for n in range(4)]
SPREAD = [row for one in WIKI for row in seen(one, -1.0, -1.0, -1.0, 0.0)]
"""Three hurts of each entry: too few to condemn one of them, enough for their source."""


def groups_of(entries: Sequence[Entry], evidence: Sequence[Evidence]) -> list[GroupStanding]:
    return group_standings("mine", entries, evidence)


def judged(
    entries: Sequence[Entry], evidence: Sequence[Evidence], terms: RetirementTerms
) -> tuple[list[EntryStanding], RetirementReview]:
    found = standings(entries, evidence)
    return found, review(found, terms, groups_of(entries, evidence))


@pytest.mark.parametrize("rule", ["sign", "betting"])
def test_a_source_goes_as_a_whole_before_any_of_its_entries_could(rule: str) -> None:
    evidence = [*SPREAD, *(row for one in CHAT for row in seen(one, 1.0, 0.0, -1.0))]
    found, reviewed = judged([*WIKI, *CHAT], evidence, RetirementTerms(max_share=0.5, rule=rule))
    assert [(one.title, one.going) for one in reviewed.groups] == [("source wiki", True)]
    assert ids(reviewed) == (["w0", "w1", "w2", "w3"], [])
    assert {one.group for one in reviewed.going} == {"source wiki"}
    assert reviewed.going[0].reason.startswith(f"source wiki: {rule}: mean utility -0.75 over 16 tasks")
    assert ids(review(found, RetirementTerms(max_share=1, rule=rule))) == ([], [])


def test_a_source_that_explains_the_harm_of_its_bank_goes_alone() -> None:
    evidence = [*SPREAD, *(row for one in CHAT for row in seen(one, 0.0, 0.0, 0.0))]
    bank = groups_of([*WIKI, *CHAT], evidence)[-1]
    assert (bank.kind, sum(bank.utilities())) == ("bank", -12)
    _, reviewed = judged([*WIKI, *CHAT], evidence, RetirementTerms(max_share=1))
    assert [one.title for one in reviewed.groups] == ["source wiki"]


def test_a_group_beyond_the_share_stays_and_its_entries_are_judged_one_by_one() -> None:
    evidence = [*SPREAD, *seen(WIKI[0], *[0.0] * 4, *[-1.0] * 6)]
    _, reviewed = judged(WIKI, evidence, RetirementTerms(max_share=0.25))
    assert [(one.title, one.going) for one in reviewed.groups] == [("bank mine", False)]
    assert "4 of its entries are active, and at most 25%" in reviewed.groups[0].reason
    assert ids(reviewed) == (["w0"], [])


def test_protected_members_of_a_group_stay() -> None:
    entries = [marked(WIKI[0], "protected"), *WIKI[1:]]
    _, reviewed = judged(entries, SPREAD, RetirementTerms(max_share=1))
    assert ids(reviewed) == (["w1", "w2", "w3"], [])
    everyone = [marked(one, "protected") for one in WIKI]
    _, reviewed = judged(everyone, SPREAD, RetirementTerms(max_share=1))
    assert ids(reviewed) == ([], [])
    assert "its entries are protected or already in quarantine" in reviewed.groups[0].reason


def test_a_group_is_quarantined_once_and_retired_later() -> None:
    terms = RetirementTerms(max_share=1, quarantine=True)
    _, aside = judged(WIKI, SPREAD, terms)
    assert {one.state for one in aside.going} == {"quarantined"}
    held = [marked(one, "quarantined") for one in WIKI]
    assert judged(held, SPREAD, terms)[1].going == []
    _, gone = judged(held, SPREAD, RetirementTerms(max_share=0.25))
    assert [one.state for one in gone.going] == ["retired"] * 4, "quarantined entries need no share"


def test_groups_and_entries_share_the_error() -> None:
    five = seen(BAD, *[-1.0] * 5)
    assert ids(review(standings([BAD], five), RetirementTerms(max_share=1, rule="sign"))) == (["bad"], [])
    evidence = [*five, *seen(GOOD, 1.0, 1.0, 1.0)]
    assert ids(judged([BAD, GOOD], evidence, RetirementTerms(max_share=1, rule="sign"))[1]) == ([], [])
