from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.stages.calibrate import logistic
from heedful.stages.value import (
    ANSWER_FEATURES,
    GAIN_FEATURES,
    MISSING,
    Asked,
    Estimates,
    PassView,
    answer_features,
    best_answer,
    gain_features,
    total,
    worth_asking,
)
from heedful.types import TreeEnsemble, ValueRule


def view(answer: str, mean: float = -0.5, **signals: float) -> PassView:
    return PassView(
        answer=answer, signals={"mean": mean, **signals}, tokens=3, characters=len(answer), recall=None
    )


def stump(features: tuple[str, ...], name: str, at: float, low: float, high: float) -> TreeEnsemble:
    """One split: `low` up to the threshold, `high` above."""
    return TreeEnsemble(
        features=features,
        roots=(0,),
        feature=(features.index(name), -1, -1),
        threshold=(at, 0.0, 0.0),
        left=(1, 0, 0),
        right=(2, 0, 0),
        value=(0.0, low, high),
    )


SURE_IS_RIGHT = stump(ANSWER_FEATURES, "mean", -0.3, log(0.2 / 0.8), log(0.9 / 0.1))
UNSURE_GAINS = stump(GAIN_FEATURES, "best", 0.5, 0.3, 0.0)
RULE = ValueRule(answer=SURE_IS_RIGHT, gain=UNSURE_GAINS, calls=(1.0, 1.0), cost=0.01)


def named(features: tuple[str, ...], values: list[float]) -> dict[str, float]:
    return dict(zip(features, values, strict=True))


def test_features_tell_who_says_the_same_and_how_sure_the_rivals_are() -> None:
    views = [view("7", -0.5), view("7.", -0.2), view("8", -0.1), view("it is 8", -0.9)]
    second = named(ANSWER_FEATURES, answer_features(views, 1))
    assert (second["same"], second["others"], second["same_as_first"], second["is_first"]) == (1, 3, 1, 0)
    assert (second["friend_mean"], second["rival_mean"]) == (-0.5, -0.1)
    assert named(ANSWER_FEATURES, answer_features(views, 2))["contained"] == 1
    alone = named(ANSWER_FEATURES, answer_features(views[:1], 0))
    assert (alone["share_same"], alone["rival_mean"], alone["margin"], alone["recall"]) == (MISSING,) * 4


def test_no_answer_agrees_with_nothing() -> None:
    views = [view(""), view("")]
    assert named(ANSWER_FEATURES, answer_features(views, 1))["same"] == 0


@given(st.permutations([view("7", -0.5), view("8", -0.2), view("7", -0.9)]))
def test_features_do_not_depend_on_the_order_in_which_sources_were_asked(rest: list[PassView]) -> None:
    first = view("6", -0.4)
    by_answer = {
        (other.answer, other.signals["mean"]): answer_features([first, *rest], at)
        for at, other in enumerate(rest, start=1)
    }
    fixed = [view("7", -0.5), view("8", -0.2), view("7", -0.9)]
    for at, other in enumerate(fixed, start=1):
        assert answer_features([first, *fixed], at) == by_answer[other.answer, other.signals["mean"]]
    assert gain_features([first, *rest], [0.5, 0.1, 0.2, 0.3], 0.0)[4] == 3, "three distinct answers"


def test_a_tree_goes_left_up_to_its_threshold() -> None:
    values = [0.0] * len(ANSWER_FEATURES)
    at = ANSWER_FEATURES.index("mean")
    assert total(SURE_IS_RIGHT, [*values[:at], -0.3, *values[at + 1 :]]) == log(0.2 / 0.8)
    assert total(SURE_IS_RIGHT, [*values[:at], -0.2, *values[at + 1 :]]) == log(0.9 / 0.1)


@given(st.floats(-700, 700))
def test_the_logistic_function_never_overflows(z: float) -> None:
    assert logistic(z) == pytest.approx(1 / (1 + exp(-z)), abs=1e-12)


def estimates(*views: PassView) -> Estimates:
    return Estimates(answer=RULE.answer, gains=RULE.gain, views=dict(enumerate(views)))


@pytest.mark.parametrize(("mean", "expected"), [(-0.5, 1), (-0.1, None)])
def test_a_source_is_asked_while_its_expected_gain_exceeds_its_cost(
    mean: float, expected: int | None
) -> None:
    assert worth_asking(estimates(view("7", mean)), RULE, (0,), [1, 2]) == expected


def test_what_costs_more_than_it_gains_is_not_asked() -> None:
    dear = ValueRule(answer=RULE.answer, gain=RULE.gain, calls=(40.0, 1.0), cost=0.01)
    assert worth_asking(estimates(view("7")), dear, (0,), [1, 2]) == 2
    assert worth_asking(estimates(view("7")), dear, (0,), [1]) is None
    assert worth_asking(estimates(view("7")), RULE, (0,), []) is None


@pytest.mark.parametrize(
    ("margin", "allowed", "expected"),
    [(0.0, (1, 2), 1), (0.0, (2,), 2), (0.0, (), 0), (0.69, (1,), 1), (0.71, (1,), 0)],
)
def test_the_likeliest_allowed_answer_must_beat_the_first_by_the_margin(
    margin: float, allowed: tuple[int, ...], expected: int
) -> None:
    known = estimates(view("7", -0.9), view("8", -0.1), view("9", -0.2))
    asked: Asked = (0, 1, 2)
    assert best_answer(known, margin, asked, allowed) == expected
