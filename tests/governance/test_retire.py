from dataclasses import replace
from typing import Any

import pytest

from heedful import UsageError, new_entry
from heedful.governance.evidence import by_harm, standings
from heedful.governance.retire import RetirementTerms, review
from heedful.types import Entry, Evidence, State

GOOD, BAD, WORSE = (new_entry(text, kind="rule", id=text) for text in ("good", "bad", "worse"))


def seen(entry: Entry, *utilities: float, version: str | None = None) -> list[Evidence]:
    return [
        Evidence(entry=entry.id, version=version or entry.digest, task=f"t{n}", utility=value)
        for n, value in enumerate(utilities)
    ]


EVIDENCE = [
    *seen(GOOD, *[1.0] * 10, *[-1.0] * 3),
    *seen(BAD, *[-1.0] * 12, *[0.0] * 10),
    *seen(WORSE, *[-1.0] * 20),
]


def marked(entry: Entry, state: State) -> Entry:
    return replace(entry, state=state)


def test_evidence_is_counted_over_distinct_tasks_of_this_version() -> None:
    twice = [*seen(GOOD, 1.0, -1.0), *seen(GOOD, 1.0, 1.0), *seen(GOOD, -1.0, version="old")]
    (found,) = standings([GOOD], twice)
    assert (found.uses, found.tasks, found.helps, found.hurts) == (4, 2, 1, 0)
    assert found.mean == 0.5


def test_the_most_harmful_come_first() -> None:
    assert [one.entry.id for one in by_harm(standings([GOOD, BAD, WORSE], EVIDENCE))] == [
        "worse",
        "bad",
        "good",
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
    assert [one.standing.entry.id for one in found.going] == ["worse"]
    assert [one.standing.entry.id for one in found.spared] == ["bad"]
    assert "protected" in found.spared[0].reason


def test_at_most_a_share_of_the_bank_goes_at_once_the_worst_first() -> None:
    found = review(standings([GOOD, BAD, WORSE], EVIDENCE), RetirementTerms(max_share=0.34))
    assert [one.standing.entry.id for one in found.going] == ["worse"]
    assert "34%" in found.spared[0].reason


def test_quarantine_sets_aside_and_only_a_review_without_it_retires() -> None:
    found = standings([GOOD, marked(BAD, "quarantined"), WORSE], EVIDENCE)
    aside = review(found, RetirementTerms(max_share=1, quarantine=True))
    assert [(one.standing.entry.id, one.state) for one in aside.going] == [("worse", "quarantined")]
    assert "in quarantine already" in aside.spared[0].reason
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
