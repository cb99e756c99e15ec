"""What feedback says about the effect of memory on an answer."""

import pytest

from heedful.dashboard.effects import (
    count_effects,
    final_right,
    first_right,
    memory_effect,
    share_interval,
)
from heedful.errors import UsageError
from heedful.records import DecisionFacts


def facts(**given: object) -> DecisionFacts:
    """An answer that memory changed, without feedback unless given."""
    fields: dict[str, object] = {
        "id": "d",
        "at": 0.0,
        "route": "consult",
        "verdict": "accept",
        "chosen": 0,
        "confidence": -1.0,
        "net_value": None,
        "seconds": 0.5,
        "policy": "p",
        "memory_first": False,
        "memory_chosen": True,
        "unchanged": False,
        **given,
    }
    return DecisionFacts(**fields)  # type: ignore[arg-type]


def kept(**given: object) -> DecisionFacts:
    settings = {"route": "keep", "verdict": None, "chosen": None, "memory_chosen": False, "unchanged": True}
    return facts(**{**settings, **given})


@pytest.mark.parametrize(
    ("given", "effect"),
    [
        (facts(grades=(False, True)), "help"),
        (facts(grades=(True, False)), "hurt"),
        (facts(grades=(True, True)), "none"),
        (facts(preference="memory"), "help"),
        (facts(preference="first"), "hurt"),
        (facts(preference="tie"), "none"),
        (facts(grades=(True, False), preference="memory"), "hurt"),
        (facts(grade="right"), None),
        (facts(grade="wrong", unchanged=True), "none"),
        (kept(grade="wrong"), "none"),
        (kept(grades=(True, False)), "none"),
        (facts(memory_chosen=False, grades=(False, True)), "none"),
        (facts(memory_first=True, grades=(False, True)), None),
        (facts(), None),
    ],
)
def test_an_effect_needs_proof_and_only_memory_gets_the_credit(
    given: DecisionFacts, effect: str | None
) -> None:
    assert memory_effect(given) == effect


def test_the_final_and_the_first_answer_have_grades_of_their_own() -> None:
    assert (final_right(facts(grades=(False, True))), first_right(facts(grades=(False, True)))) == (
        True,
        False,
    )
    assert (final_right(facts(grade="right")), first_right(facts(grade="right"))) == (True, None)
    assert first_right(kept(grade="wrong")) is False
    assert final_right(facts(preference="tie")) is None


def test_effects_are_counted_with_an_interval_and_unproven_answers_apart() -> None:
    graded = (
        [facts(grades=(False, True))] * 30 + [facts(grades=(True, False))] * 2 + [facts(grade="right")] * 3
    )
    counts = count_effects(graded)
    assert (counts.graded, counts.proven, counts.helps, counts.hurts, counts.unproven) == (35, 32, 30, 2, 3)
    assert (counts.right, counts.judged) == (33, 35)
    assert counts.net is not None
    assert (counts.net.value, counts.net.n) == (28 / 32, 32)
    assert 0 < counts.net.low < 28 / 32 < counts.net.high <= 1


def test_without_proof_there_is_no_net_effect() -> None:
    assert count_effects([facts(grade="right")]).net is None


def test_nothing_is_counted_without_grades() -> None:
    with pytest.raises(UsageError, match="got 0 answers"):
        count_effects([])
    with pytest.raises(UsageError, match="graded"):
        count_effects([facts()])
    with pytest.raises(UsageError, match="0 of 0"):
        share_interval(0, 0)
