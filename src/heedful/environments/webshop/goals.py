"""The goals of the shop: every combination of the options of every product with an instruction."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as combinations

from heedful.environments.webshop.catalogue import Product
from heedful.types import EpisodeSide

PRICE_CAPS = [10.0 * tens for tens in range(1, 100)]
NO_CAP = 1_000_000.0
SHUFFLE_SEED = 233
SIDES: dict[EpisodeSide, slice] = {"test": slice(0, 500), "fit": slice(500, 1500), "pool": slice(1500, None)}
"""The published split of the shuffled goals; `fit` is its dev side and `pool` its train side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopGoal:
    """What to buy: a product with its options, at most at this price."""

    target: Product
    text: str
    attributes: tuple[str, ...]
    options: dict[str, str]
    price_cap: float


def make_goals(products: Sequence[Product]) -> list[ShopGoal]:
    """All goals, in the shuffled order by which they are numbered."""
    goals = [goal for product in products if product.instruction for goal in _goals_of(product)]
    random.Random(SHUFFLE_SEED).shuffle(goals)
    return goals


def _goals_of(product: Product) -> list[ShopGoal]:
    cap = _price_cap(product)
    price = "" if cap == NO_CAP else f", and price lower than {cap:.2f} dollars"
    goals = []
    for values in combinations(*product.choices.values()):
        options = dict(zip(product.choices, values, strict=True))
        named = ", and ".join(f"{name}: {value}" for name, value in options.items())
        goals.append(
            ShopGoal(
                target=product,
                text=f"{product.instruction}{f' with {named}' if named else ''}{price}",
                attributes=product.instruction_attributes or (),
                options=options,
                price_cap=cap,
            )
        )
    return goals


def _price_cap(product: Product) -> float:
    """The higher of two of the next four round prices, drawn by the product's id."""
    above = [cap for cap in PRICE_CAPS if cap > product.price][:4]
    if len(above) < 2:
        return NO_CAP
    return max(random.Random(f"{SHUFFLE_SEED} {product.asin}").sample(above, 2))
