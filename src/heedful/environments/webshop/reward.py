"""The reward of a purchase: type × (attributes + options + price) / everything that was asked."""

import re
from collections.abc import Mapping
from difflib import SequenceMatcher

from heedful.environments.webshop.catalogue import Product
from heedful.environments.webshop.goals import ShopGoal

ALIKE = 85
"""Two phrases match above this token-set ratio, in percent."""
COLOURS = (
    *("black", "white", "gray", "grey", "silver", "gold", "beige", "brown", "khaki", "tan", "cream", "ivory"),
    *("red", "wine", "burgundy", "pink", "rose", "coral", "orange", "yellow", "green", "olive", "mint"),
    *("teal", "turquoise", "aqua", "blue", "navy", "purple", "violet", "lavender", "bronze", "copper"),
)
NOT_NOUNS = frozenset(
    (
        *(
            "and",
            "for",
            "with",
            "the",
            "from",
            "your",
            "our",
            "all",
            "any",
            "are",
            "can",
            "not",
            "non",
            "new",
        ),
        *(
            "set",
            "size",
            "color",
            "colour",
            "pack",
            "inch",
            "inches",
            "men",
            "women",
            "girls",
            "boys",
            "kids",
        ),
        *("large", "small", "medium", "long", "short", "high", "low", "great", "best", "good", "perfect"),
        *("free", "full", "extra", "super", "ultra", "multi", "one", "two", "three", "four", "five", "six"),
        *COLOURS,
    )
)
ENDINGS = ("ly", "ful", "able", "ible", "less", "ous", "ive", "ing", "ed", "proof", "est", "ish")
"""Endings of adjectives, adverbs and verb forms."""


def reward(bought: Product, options: Mapping[str, str], goal: ShopGoal) -> float:
    """From 0 to 1; 1 for the goal's own product with its options."""
    attributes = sum(_has_attribute(bought, attribute) for attribute in goal.attributes)
    chosen = sum(any(_same_option(value, wanted) for value in options.values()) for wanted in _wanted(goal))
    cheap = bought.price <= goal.price_cap
    asked = len(goal.attributes) + len(goal.options) + 1
    return type_reward(bought, goal.target) * (attributes + chosen + cheap) / asked


def type_reward(bought: Product, target: Product) -> float:
    """Whether the product is of the wanted type: by query, by category, or by the nouns of the title.

    The published reward finds nouns with a part-of-speech tagger; `title_nouns` stands in for it.
    """
    if bought.asin == target.asin:
        return 1.0
    wanted = title_nouns(target.title)
    overlap = len(wanted & title_nouns(bought.title)) / len(wanted) if wanted else 0.2
    shared = _categories(bought) & _categories(target)
    match = bought.query == target.query or len(shared) >= 2 or overlap > 0.2
    if overlap == 0:
        return 0.0
    if overlap < 0.1:
        return 0.1
    return 1.0 if match else 0.5


def title_nouns(title: str) -> frozenset[str]:
    """The words of a title that may be nouns: at least three letters, no frequent adjective or ending."""
    words = re.findall(r"[a-z]{3,}", title.lower())
    return frozenset(word for word in words if word not in NOT_NOUNS and not word.endswith(ENDINGS))


def token_set_ratio(one: str, other: str) -> float:
    """The likeness of two phrases in percent; the order of words and words in common do not count against."""
    first, second = _words(one), _words(other)
    if not first or not second:
        return 0.0
    common = " ".join(sorted(first & second))
    longer = [f"{common} {' '.join(sorted(rest))}".strip() for rest in (first - second, second - first)]
    pairs = ((common, longer[0]), (common, longer[1]), (longer[0], longer[1]))
    return max(100 * SequenceMatcher(None, a, b, autojunk=False).ratio() for a, b in pairs if a and b)


def _words(phrase: str) -> set[str]:
    return set(re.findall(r"\w+", phrase.lower()))


def _categories(product: Product) -> set[str]:
    return {part.strip() for part in product.product_category.split("›") if part.strip()}


def _has_attribute(product: Product, attribute: str) -> bool:
    alike = any(token_set_ratio(own, attribute) > ALIKE for own in product.attributes)
    return alike or attribute.lower() in product.text


def _wanted(goal: ShopGoal) -> list[str]:
    return list(goal.options.values())


def _same_option(value: str, wanted: str) -> bool:
    one, other = _plain_colour(value), _plain_colour(wanted)
    return one == other or token_set_ratio(one, other) > ALIKE


def _plain_colour(value: str) -> str:
    """The first basic colour that a value names, or the value itself."""
    return next((colour for colour in COLOURS if re.search(rf"\b{colour}\b", value)), value)
