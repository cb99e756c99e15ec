"""What counts as evidence: first observations, clusters of tasks, own outcomes, probes."""

from heedful import new_entry
from heedful.governance.evidence import by_harm, standings
from heedful.types import Entry, Evidence

GOOD, BAD, NEAR = (new_entry(text, kind="rule", id=text) for text in ("good", "bad", "near"))


def seen(entry: Entry, task: str, utility: float, decision: str = "", version: str = "") -> Evidence:
    return Evidence(
        entry=entry.id, version=version or entry.digest, task=task, utility=utility, decision=decision
    )


def test_only_the_first_observation_of_a_task_counts() -> None:
    repeats = [seen(GOOD, "t0", 1.0, "d0"), *(seen(GOOD, "t0", -1.0, f"d{n}") for n in range(1, 9))]
    (found,) = standings([GOOD], [*repeats, seen(GOOD, "t1", 0.0)])
    assert (found.uses, found.tasks, found.helps, found.hurts, found.mean) == (10, 2, 1, 0, 0.5)


def test_evidence_about_another_version_does_not_count() -> None:
    (found,) = standings([GOOD], [seen(GOOD, "t0", -1.0, version="old"), seen(GOOD, "t1", 1.0)])
    assert (found.tasks, found.helps) == (1, 1)


def test_tasks_of_one_cluster_count_once() -> None:
    copies = [seen(BAD, f"t{n}", -1.0) for n in range(6)]
    clusters = {f"t{n}": "the same question" for n in range(5)}
    (found,) = standings([BAD], copies, cluster_of=clusters)
    assert (found.tasks, found.hurts) == (2, 2)


def test_the_most_harmful_come_first() -> None:
    evidence = [seen(GOOD, "t0", 1.0), seen(BAD, "t1", -1.0)]
    assert [one.entry.id for one in by_harm(standings([GOOD, BAD, NEAR], evidence))] == [
        "bad",
        "near",
        "good",
    ]


def test_an_outcome_is_an_entrys_own_if_it_was_alone_or_leave_one_out_blames_it() -> None:
    together = [seen(entry, f"t{n}", -1.0) for n in range(3) for entry in (BAD, NEAR)]
    evidence = [*together, seen(BAD, "t3", -1.0), seen(NEAR, "t4", 0.0)]
    bad, near = standings([BAD, NEAR], evidence)
    assert (bad.own, bad.uncredited, bad.companion) == ((0, 0, 0, -1), 3, "near")
    credit = {("t0", "bad"): True, ("t1", "bad"): True, ("t0", "near"): False, ("t1", "near"): False}
    bad, near = standings([BAD, NEAR], evidence, credit=credit)
    assert (bad.own, bad.uncredited) == ((-1, -1, 0, -1), 1)
    assert (near.own, near.utilities) == ((0, 0, 0, 0), (-1, -1, -1, 0))


def test_entries_of_different_decisions_about_one_task_were_not_together() -> None:
    evidence = [seen(BAD, "t0", -1.0, "d0"), seen(NEAR, "t0", -1.0, "d1")]
    assert [one.own for one in standings([BAD, NEAR], evidence)] == [(-1,), (-1,)]
    undecided = [seen(BAD, "t0", -1.0), seen(NEAR, "t0", -1.0)]
    assert [one.own for one in standings([BAD, NEAR], undecided)] == [(0,), (0,)]


def test_a_probe_is_an_own_outcome_on_a_task_that_did_not_recall_the_entry() -> None:
    evidence = [seen(entry, "t0", -1.0) for entry in (BAD, NEAR)]
    probes = [seen(BAD, "t0", 1.0), seen(BAD, "t1", -1.0), seen(NEAR, "t1", 0.0)]
    bad, near = standings([BAD, NEAR], evidence, probes=probes)
    assert (bad.utilities, bad.own, bad.probes) == ((-1, -1), (0, -1), 1)
    assert (near.utilities, near.probes) == ((-1, 0), 1)
