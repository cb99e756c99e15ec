"""Live governance: quarantine first, and what follows it."""

import asyncio
from dataclasses import replace

import pytest

from heedful import SqliteStore, UsageError, new_entry
from heedful.feedback import answer_feedback
from heedful.governance.live import GOVERNANCE, LiveReview, govern_live
from heedful.governance.terms import RetirementTerms
from heedful.memory.feedback import SqliteFeedback
from heedful.memory.journal import SqliteJournal
from heedful.types import Entry, Evidence, Mark
from tests.rollout.making import shadow_decision

ENTRIES = [new_entry(text, kind="rule", id=text) for text in ("bad", "worse", "good", "fine")]
BAD, WORSE, GOOD, _ = ENTRIES
HALF = RetirementTerms(own_outcomes=True, max_share=0.5)


@pytest.fixture
def bank(store: SqliteStore) -> SqliteStore:
    asyncio.run(store.put("b", ENTRIES))
    return store


def observe(store: SqliteStore, entry: Entry, *utilities: float, start: int = 0) -> None:
    seen = [
        Evidence(entry=entry.id, version=entry.digest, task=f"{entry.id} {start + n}", utility=value)
        for n, value in enumerate(utilities)
    ]
    asyncio.run(store.observe("b", seen))


def govern(store: SqliteStore, terms: RetirementTerms = HALF, *, apply: bool = True) -> LiveReview:
    return asyncio.run(govern_live(store, "b", terms, apply=apply))


def state_of(store: SqliteStore, entry: Entry) -> str:
    return asyncio.run(store.entry("b", entry.id)).state


def test_a_condemned_entry_goes_into_quarantine_with_its_grounds(bank: SqliteStore) -> None:
    observe(bank, BAD, *[-1.0] * 12, 1.0)
    observe(bank, GOOD, *[1.0] * 12)
    assert [(mark.entry, mark.state) for mark in govern(bank).marks] == [("bad", "quarantined")]
    [change] = asyncio.run(bank.audit("b"))
    assert (change.entry, change.before, change.state, change.by) == (
        "bad",
        "active",
        "quarantined",
        GOVERNANCE,
    )
    assert change.grounds is not None
    assert (change.grounds.tasks, change.grounds.helps, change.grounds.hurts) == (13, 1, 12)
    assert change.grounds.bound is not None
    assert change.grounds.bound < 0


def test_without_further_evidence_it_waits(bank: SqliteStore) -> None:
    observe(bank, BAD, *[-1.0] * 12)
    govern(bank)
    assert govern(bank).marks == ()
    assert state_of(bank, BAD) == "quarantined"


def test_further_evidence_retires_it(bank: SqliteStore) -> None:
    observe(bank, BAD, *[-1.0] * 12)
    govern(bank)
    observe(bank, BAD, -1.0, start=12)
    assert [(mark.entry, mark.state) for mark in govern(bank).marks] == [("bad", "retired")]
    assert state_of(bank, BAD) == "retired"
    assert govern(bank).marks == (), "a retired entry stays retired"


def test_further_evidence_for_it_restores_it(bank: SqliteStore) -> None:
    observe(bank, BAD, *[-1.0] * 6)
    govern(bank)
    assert state_of(bank, BAD) == "quarantined"
    observe(bank, BAD, *[1.0] * 30, start=6)
    assert [(mark.entry, mark.state) for mark in govern(bank).marks] == [("bad", "active")]
    assert state_of(bank, BAD) == "active"


def test_a_new_version_returns_from_quarantine(bank: SqliteStore) -> None:
    observe(bank, BAD, *[-1.0] * 12)
    govern(bank)
    asyncio.run(bank.put("b", [replace(BAD, text="better")]))
    assert [mark.state for mark in govern(bank).marks] == ["active"]


def test_protected_entries_and_those_a_person_set_aside_stay(bank: SqliteStore) -> None:
    observe(bank, BAD, *[-1.0] * 12)
    observe(bank, WORSE, *[-1.0] * 12)
    by_hand = [Mark(entry="bad", state="protected"), Mark(entry="worse", state="quarantined", by="ana")]
    asyncio.run(bank.mark("b", by_hand))
    observe(bank, WORSE, *[-1.0] * 3, start=12)
    reviewed = govern(bank)
    assert reviewed.marks == ()
    assert [one.standing.entry.id for one in reviewed.spared if "protected" in one.reason] == ["bad"]


def test_the_quarantine_never_holds_more_than_the_allowed_share(bank: SqliteStore) -> None:
    quarter = replace(HALF, max_share=0.25)
    for entry in (BAD, WORSE):
        observe(bank, entry, *[-1.0] * 12)
    assert len(govern(bank, quarter).marks) == 1
    assert govern(bank, quarter).marks == ()
    assert sorted(state_of(bank, entry) for entry in (BAD, WORSE)) == ["active", "quarantined"]


def test_a_condemned_group_goes_as_a_whole_and_is_named_in_the_grounds(store: SqliteStore) -> None:
    sourced = [replace(entry, source="wiki") for entry in ENTRIES[:2]]
    asyncio.run(store.put("b", [*sourced, *ENTRIES[2:]]))
    for entry in sourced:
        observe(store, entry, *[-1.0] * 5)
    observe(store, GOOD, *[1.0] * 10)
    assert {(mark.entry, mark.state) for mark in govern(store).marks} == {
        ("bad", "quarantined"),
        ("worse", "quarantined"),
    }
    assert {change.grounds.group for change in asyncio.run(store.audit("b"))} == {"source wiki"}
    observe(store, sourced[0], -1.0, start=5)
    assert {mark.state for mark in govern(store).marks} == {"retired"}


def test_nothing_changes_without_apply(bank: SqliteStore) -> None:
    observe(bank, BAD, *[-1.0] * 12)
    assert len(govern(bank, apply=False).marks) == 1
    assert state_of(bank, BAD) == "active"


def test_a_rule_for_one_look_is_refused(bank: SqliteStore) -> None:
    with pytest.raises(UsageError, match="which the rule sign does not allow"):
        govern(bank, RetirementTerms(rule="sign"))


def test_corrected_feedback_restores_what_it_condemned(bank: SqliteStore) -> None:
    journal, feedback = SqliteJournal(bank.database), SqliteFeedback(bank.database)
    decisions = []
    for n in range(6):
        decision = shadow_decision(
            f"d{n}", "blue", "red", sources={"memory": {"kind": "memory", "bank": "b"}}
        )
        recalls = (replace(decision.candidates[0].record.recalls[0], entry="bad", version=BAD.digest),)
        candidate = replace(
            decision.candidates[0], record=replace(decision.candidates[0].record, recalls=recalls)
        )
        decisions.append(replace(decision, candidates=(candidate,)))
        asyncio.run(journal.record(decisions[-1]))

    def say(right: str) -> None:
        for decision in decisions:
            given = answer_feedback(decision, right, "text", lambda one, other: one == other)
            asyncio.run(feedback.give(given))

    say("blue")
    assert [mark.state for mark in govern(bank).marks] == ["quarantined"]
    say("red")
    assert [mark.state for mark in govern(bank).marks] == ["active"]
