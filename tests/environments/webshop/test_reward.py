"""The reward of a purchase."""

import msgspec
import pytest

from heedful.environments.webshop.catalogue import Product
from heedful.environments.webshop.goals import ShopGoal, make_goals
from heedful.environments.webshop.reward import reward, title_nouns, token_set_ratio, type_reward
from tests.environments.making import product


def made(number: int, **changes: object) -> Product:
    return msgspec.convert(product(number, **changes), Product)


def goal_of(target: Product) -> ShopGoal:
    return next(goal for goal in make_goals([target]) if goal.options["color"] == "sky blue")


def test_each_wrong_part_costs_its_share() -> None:
    target = made(0)
    goal = goal_of(target)
    assert reward(target, goal.options, goal) == 1.0
    assert reward(target, {**goal.options, "color": "red"}, goal) == pytest.approx(3 / 4)
    assert reward(target, {}, goal) == pytest.approx(2 / 4)
    dear = made(4, pricing=[900.0])
    assert reward(dear, goal.options, goal) == pytest.approx(3 / 4)


def test_a_shade_of_the_colour_is_the_colour() -> None:
    target = made(0)
    goal = goal_of(target)
    assert reward(target, {**goal.options, "color": "navy blue"}, goal) == 1.0


def test_an_attribute_counts_in_the_text_and_by_likeness() -> None:
    goal = goal_of(made(0))
    silent = {"attributes": [], "description": "", "bullets": []}
    assert reward(made(4, **silent), goal.options, goal) == pytest.approx(3 / 4)
    assert reward(made(4, **silent | {"attributes": ["safe dishwasher"]}), goal.options, goal) == 1.0


def test_the_type_counts_by_query_category_or_title() -> None:
    target = made(0)
    assert type_reward(made(4), target) == 1.0
    other = {"query": "x", "product_category": "Toys"}
    assert type_reward(made(4, **other), target) == 1.0
    assert type_reward(made(4, **other, title="Wooden train"), target) == 0.0
    long = made(0, title="mug lid cup saucer plate bowl spoon fork knife jar tin")
    assert type_reward(made(4, **other, title="mug train"), long) == 0.1
    shorter = made(0, title="mug lid cup saucer plate bowl spoon")
    assert type_reward(made(4, **other, title="mug train"), shorter) == 0.5


def test_nouns_are_words_without_adjectives_and_colours() -> None:
    assert title_nouns("Waterproof Red Hiking Boots for Women, 2 Pack") == {"boots"}


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("long sleeve", "sleeve long", True),
        ("machine wash", "machine wash cold", True),
        ("wool", "cotton", False),
        ("", "cotton", False),
    ],
)
def test_phrases_are_alike_by_their_sets_of_words(one: str, other: str, alike: bool) -> None:
    assert (token_set_ratio(one, other) > 85) is alike
