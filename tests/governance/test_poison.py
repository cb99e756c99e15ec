from collections import Counter

import pytest

from heedful import UsageError, new_entry
from heedful.governance.poison import KINDS, is_bad, spoiled

RULES = [
    new_entry(text, kind="rule", id=text[:8])
    for text in (
        "Pages left are all pages minus pages read.",
        "If 2 boxes hold 6 each, multiply.",
        "Money spent is the start minus what is left.",
        "The larger minus the smaller is the difference.",
        "Divide the total by the number of groups.",
        "Use only the numbers of that kind.",
        "A dozen is 12.",
    )
]


def test_bad_entries_are_the_asked_share_in_all_kinds_and_the_good_stay() -> None:
    mixed = spoiled(RULES, 0.3, list(KINDS), 0)
    assert mixed[: len(RULES)] == RULES
    bad = mixed[len(RULES) :]
    assert len(bad) == 3
    assert all(is_bad(entry.id) for entry in bad)
    assert not any(is_bad(entry.id) for entry in RULES)
    many = spoiled(RULES, 0.75, list(KINDS), 0)
    kinds = Counter(entry.tags[-1] for entry in many[len(RULES) :])
    assert set(kinds) == set(KINDS)
    assert sum(kinds.values()) / len(many) == pytest.approx(0.75)
    assert len({entry.id for entry in many}) == len(many)


def test_poison_carries_an_order_and_the_words_of_an_entry_so_that_it_is_recalled() -> None:
    (bad,) = spoiled(RULES, 0.1, ["poisoned"], 0)[len(RULES) :]
    assert any(bad.text.startswith(rule.text) and bad.text != rule.text for rule in RULES)


def test_stale_entries_say_something_else_than_the_one_they_come_from() -> None:
    texts = {rule.text for rule in RULES}
    bad = spoiled(RULES, 0.5, ["stale", "contradictory"], 1)[len(RULES) :]
    assert all(entry.text not in texts for entry in bad)


def test_a_bank_of_exemplars_gets_bad_exemplars() -> None:
    worked = [new_entry("3 and 4?", kind="exemplar", response="3 + 4 = 7. Answer: 7", id="a")]
    mixed = spoiled(worked, 0.85, list(KINDS), 0)
    assert all(entry.kind == "exemplar" and entry.response for entry in mixed)


def test_the_same_seed_gives_the_same_bank() -> None:
    assert spoiled(RULES, 0.5, list(KINDS), 4) == spoiled(RULES, 0.5, list(KINDS), 4)
    assert spoiled(RULES, 0.0, list(KINDS), 4) == RULES


@pytest.mark.parametrize(("rate", "kinds"), [(1.0, ["stale"]), (-0.1, ["stale"]), (0.3, ["rude"])])
def test_what_makes_no_sense_is_refused(rate: float, kinds: list[str]) -> None:
    with pytest.raises(UsageError):
        spoiled(RULES, rate, kinds, 0)
