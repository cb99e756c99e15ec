"""`heedful ask --shadow|--canary` and `heedful shadow report`, against an endpoint on loopback."""

from pathlib import Path

import pytest

from tests.cli.conftest import Heedful
from tests.cli.test_asking import shelves
from tests.faulty import FaultyServer


@pytest.fixture
def words(heedful: Heedful) -> tuple[str, ...]:
    heedful("bank", "add", "Every shelf holds nails.", "--bank", "notes", "--kind", "fact")
    return ("--bank", "notes", "--model", "m", "--recall", "bm25", "--json")


def test_a_shadow_is_reported_and_promoted_only_within_the_limit(
    heedful: Heedful, words: tuple[str, ...]
) -> None:
    with FaultyServer(shelves) as server:
        asked = [
            heedful("ask", f"What is on shelf {n}?", "--shadow", "--url", server.url, *words).json
            for n in range(4)
        ]
    assert {(one["answer"], one["verdict"], one["reason"]) for one in asked} == {
        ("rope", "rollback", "shadow")
    }
    for one in asked[:3]:
        heedful("feedback", one["decision"], "--answer", "nails" if one is not asked[0] else "rope")
    told = heedful("shadow", "report", "--since", "1d", "--json").json
    assert (told["answers"], told["changed"]["value"], told["graded"], told["undecided"]) == (4, 1.0, 3, 1)
    assert told["hurts"]["value"] == pytest.approx(1 / 3)
    assert told["cost"]["calls"]["value"] == 1.0
    assert (told["promote"], told["limit"]) == (False, 0.02)
    by_id = heedful("shadow", "report", "--policy", told["policy"][:6], "--limit", "0.999").out
    assert "promote    yes: at most" in by_id
    assert "hurt: 'What is on shelf 0?': 'rope' would become 'nails'" in by_id
    shown = heedful("decisions", "show", asked[0]["decision"]).out
    assert "rollout  shadow, served the first answer" in shown
    assert "a shadow serves the answer without memory" in shown
    unknown = heedful("shadow", "report", "--policy", "zzz")
    assert (unknown.code, told["policy"] in unknown.err) == (2, True)


def test_a_canary_gives_each_user_one_arm(heedful: Heedful, words: tuple[str, ...]) -> None:
    answers: dict[str, set[str]] = {}
    with FaultyServer(shelves) as server:
        for n in range(6):
            for place in ("shed", "hall"):
                options = ("--canary", "0.5", "--scope", f"user=u{n}", "--url", server.url, *words)
                said = heedful("ask", f"What is on the shelf in the {place}?", *options).json["answer"]
                answers.setdefault(f"u{n}", set()).add(said)
    assert all(len(said) == 1 for said in answers.values())
    assert {"rope", "nails"} == set.union(*answers.values())


def test_options_that_a_shadow_ignores_are_refused(heedful: Heedful) -> None:
    for option in ("--canary", "--explore"):
        done = heedful("ask", "What?", "--shadow", option, "0.5", "--url", "http://127.0.0.1:9/v1")
        assert (done.code, f"{option} has no effect with --shadow" in done.err) == (2, True)


def test_without_a_shadow_there_is_no_report(heedful: Heedful, tmp_path: Path) -> None:
    done = heedful("shadow", "report")
    assert (done.code, done.out) == (2, "")
    assert "heedful ask --shadow records them" in done.err
