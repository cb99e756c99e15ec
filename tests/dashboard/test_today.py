"""The sentence at the top, and the numbers behind it."""

import pytest

from heedful.dashboard.today import headline, latency, today_of
from heedful.errors import UsageError
from heedful.records import DecisionFacts, Traffic
from tests.dashboard.test_effects import facts, kept

TRAFFIC = [
    Traffic(route="consult", verdict="accept", decisions=30, calls=60, tokens=3000, faulty=1),
    Traffic(route="consult", verdict="rollback", decisions=10, calls=20, tokens=1000, faulty=0),
    Traffic(route="keep", verdict=None, decisions=60, calls=60, tokens=3000, faulty=2),
]
HELP, HURT = facts(grades=(False, True)), facts(grades=(True, False))


def sentence(graded: list[DecisionFacts]) -> tuple[str, str]:
    return headline(today_of("day", TRAFFIC, graded, []))


def test_a_clear_gain_is_good_news_with_its_interval() -> None:
    text, tone = sentence([HELP] * 30 + [HURT] + [kept(grade="right")] * 9)
    assert text.startswith(
        "Memory helped 30 and hurt 1 of 40 graded answers in the last 24 hours: a gain of +72.5 ["
    )
    assert tone == "gain"


def test_a_clear_loss_is_bad_news() -> None:
    text, tone = sentence([HURT] * 30 + [kept(grade="right")] * 10)
    assert "a loss of −75.0 [" in text
    assert tone == "loss"


def test_too_few_grades_are_called_too_few() -> None:
    text, tone = sentence([HELP, HELP, HURT])
    assert "too few to say whether it helps" in text
    assert tone == "unclear"


def test_missing_grades_missing_proof_and_missing_answers_are_said() -> None:
    assert sentence([])[0].startswith("None of 100 answers in the last 24 hours is graded")
    assert "no feedback compares them" in sentence([facts(grade="right")])[0]
    assert headline(today_of("hour", [], [], [])) == ("No answers in the last hour.", "unclear")


def test_traffic_is_added_up_by_route() -> None:
    today = today_of("day", TRAFFIC, [], [kept(seconds=0.25), facts(seconds=1.0), facts(seconds=3.0)])
    sums = today.answers
    assert (sums.decisions, sums.calls, sums.tokens, sums.faulty) == (100, 140, 7000, 3)
    assert (today.consulted.decisions, today.accepted) == (40, 30)
    assert today.kept_latency is not None
    assert today.consulted_latency is not None
    assert (today.kept_latency.median, today.consulted_latency.p95) == (0.25, 3.0)


def test_percentiles_are_nearest_ranks() -> None:
    measured = latency([float(n) for n in range(100, 0, -1)])
    assert (measured.n, measured.median, measured.p95) == (100, 50.0, 95.0)
    with pytest.raises(UsageError, match="at least one"):
        latency([])
