from dataclasses import replace
from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.stages.calibrate import logistic
from heedful.stages.trees import total
from heedful.stages.value import Asked, Estimates, Step, best_answer, best_step, explained_answers
from heedful.stages.value_features import (
    ANSWER_FEATURES,
    GAIN_FEATURES,
    MISSING,
    PassView,
    answer_features,
    gain_features,
)
from heedful.types import ValueRule, ValueTrees
from tests.making import stump


def view(answer: str, mean: float = -0.5, **signals: float) -> PassView:
    return PassView(
        answer=answer, signals={"mean": mean, **signals}, tokens=3, characters=len(answer), recall=None
    )


SURE_IS_RIGHT = stump(ANSWER_FEATURES, "mean", -0.3, log(0.2 / 0.8), log(0.9 / 0.1))
UNSURE_GAINS = stump(GAIN_FEATURES, "best", 0.5, 0.3, 0.0)
TREES = ValueTrees(answer=SURE_IS_RIGHT, gain=UNSURE_GAINS)
RULE = ValueRule(trees=TREES, costs=(1.0, 1.0), cost=0.01)


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
    return Estimates(trees=TREES, views=dict(enumerate(views)))


def step_of(rule: ValueRule, waiting: list[int], mean: float = -0.5) -> Step:
    step = best_step(estimates(view("7", mean)), rule, (0,), waiting)
    assert step is not None
    return step


@pytest.mark.parametrize(("mean", "pays"), [(-0.5, True), (-0.1, False)])
def test_a_source_is_asked_while_its_expected_gain_exceeds_its_cost(mean: float, pays: bool) -> None:
    step = step_of(RULE, [1, 2], mean)
    assert (step.place, step.pays) == (1, pays), "the earlier source on a tie"


def test_what_costs_more_than_it_gains_is_not_asked() -> None:
    dear = ValueRule(trees=TREES, costs=(40.0, 1.0), cost=0.01)
    assert (step_of(dear, [1, 2]).place, step_of(dear, [1, 2]).pays) == (2, True)
    assert not step_of(dear, [1]).pays
    assert best_step(estimates(view("7")), RULE, (0,), []) is None


def test_tokens_are_priced_by_the_thousand() -> None:
    cheap = ValueRule(trees=TREES, costs=(400.0,), unit="tokens", cost=0.5)
    assert step_of(cheap, [1]).cost == pytest.approx(0.2)
    assert step_of(cheap, [1]).pays
    assert not step_of(ValueRule(trees=TREES, costs=(800.0,), unit="tokens", cost=0.5), [1]).pays


def test_a_prior_is_a_feature_of_the_trees_that_use_it() -> None:
    likelier = stump(ANSWER_FEATURES, "prior", 0.0, -1.0, 1.0)
    trees = ValueTrees(answer=likelier, gain=UNSURE_GAINS, prior=TREES)
    known = Estimates(trees=trees, views={0: view("7", -0.5), 1: view("8", -0.1)})
    assert known.log_odds((0, 1)) == [-1.0, 1.0]
    assert known.prior is not None
    assert known.prior.chances((0, 1)) == pytest.approx([0.2, 0.9])


def test_trees_that_cannot_tell_sources_apart_see_none() -> None:
    known = Estimates(trees=replace(TREES, by_source=False), views={0: view("7")})
    assert named(GAIN_FEATURES, known.gain_features((0,), 2))["source"] == MISSING
    assert named(GAIN_FEATURES, estimates(view("7")).gain_features((0,), 2))["source"] == 1


def test_answers_in_words_are_compared_by_meaning_and_numbers_are_not() -> None:
    views = [view("four weeks"), view("a month"), view("30"), view("Four weeks.")]
    alike = {frozenset(("four weeks", "a month")): 0.7}

    def similar(one: str, other: str) -> float:
        return alike.get(frozenset((one.casefold().rstrip("."), other.casefold().rstrip("."))), 0.1)

    month, amount, same = (named(ANSWER_FEATURES, answer_features(views, at, similar)) for at in (1, 2, 3))
    assert (month["similar"], month["similar_to_first"]) == (0.7, 0.7)
    assert (amount["similar"], amount["similar_to_first"]) == (MISSING, MISSING)
    assert same["similar_to_first"] == 1
    assert named(ANSWER_FEATURES, answer_features(views, 1))["similar"] == MISSING


def test_an_explanation_names_the_features_that_moved_the_estimate_most() -> None:
    first, second = explained_answers(estimates(view("7", -0.5), view("8", -0.1)), (0, 1), ("none", "bank"))
    assert (first.source, second.source) == ("none", "bank")
    assert [first.chance, second.chance] == pytest.approx([0.2, 0.9])
    assert [(r.feature, r.value) for r in second.reasons] == [("mean", -0.1)]
    assert second.reasons[0].effect == pytest.approx(log(9)), "from the mean of all rows to the leaf"


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
