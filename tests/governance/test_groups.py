"""Which groups a bank has, and which tasks speak about them."""

from dataclasses import replace

from heedful import new_entry
from heedful.governance.groups import group_standings
from heedful.types import Entry, Evidence


def entry(id: str, source: str = "", *tags: str) -> Entry:
    return new_entry(id, kind="rule", id=id, source=source, tags=tags)


def recalled(task: str, utility: float, *entries: Entry) -> list[Evidence]:
    return [Evidence(entry=one.id, version=one.digest, task=task, utility=utility) for one in entries]


A, B = entry("a", "wiki", "author:ann", "sums"), entry("b", "wiki", "author:ann", "ages")
C, D = entry("c", "wiki", "author:bob", "sums"), entry("d", "chat", "author:bob")
ALONE = [row for n, one in enumerate((A, B, C, D)) for row in recalled(f"t{n}", -1.0, one)]


def test_groups_are_the_bank_sources_authors_and_tags_the_smallest_first() -> None:
    found = group_standings("mine", [A, B, C, D], ALONE)
    named = [(group.kind, group.name, sorted(group.ids)) for group in found]
    assert named == [
        ("author", "ann", ["a", "b"]),
        ("author", "bob", ["c", "d"]),
        ("tag", "sums", ["a", "c"]),
        ("source", "wiki", ["a", "b", "c"]),
        ("bank", "mine", ["a", "b", "c", "d"]),
    ]


def test_groups_with_the_same_entries_are_one() -> None:
    assert [(g.kind, len(g.outcomes)) for g in group_standings("mine", [A, B], ALONE)] == [("bank", 2)]


def test_a_task_counts_for_a_group_if_it_recalled_nobody_else_and_only_once() -> None:
    mixed = [*ALONE, *recalled("t9", -1.0, A, D), *recalled("t8", 1.0, A, B), *recalled("t8", -1.0, A)]
    found = {group.name: group.utilities() for group in group_standings("mine", [A, B, C, D], mixed)}
    assert list(found["ann"]) == [-1, -1, 1]
    assert list(found["mine"]) == [-1, -1, -1, -1, -1, 1]


def test_tasks_of_blamed_entries_are_left_out() -> None:
    bank = group_standings("mine", [A, B, C, D], ALONE)[-1]
    assert len(bank.utilities(frozenset("ab"))) == 2


def test_tasks_of_one_cluster_count_once() -> None:
    bank = group_standings("mine", [A, B, C, D], ALONE, {"t0": "q", "t1": "q", "t2": "q"})[-1]
    assert bank.utilities() == (-1, -1)


def test_a_retired_entry_is_in_no_group_and_what_it_was_part_of_does_not_count() -> None:
    gone = replace(D, state="retired")
    (bank,) = group_standings("mine", [A, B, gone], [*ALONE, *recalled("t9", -1.0, A, D)])
    assert (sorted(bank.ids), len(bank.outcomes)) == (["a", "b"], 2)


def test_one_entry_with_evidence_is_not_a_group() -> None:
    assert group_standings("mine", [A, B], recalled("t0", -1.0, A)) == []
