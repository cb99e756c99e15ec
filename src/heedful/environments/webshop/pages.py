"""The pages of the shop: their texts and their buttons.

A page is a list of texts, joined with [SEP] as in the published text interface. There, every page but
the last begins with the instruction; `with_instruction` adds it. An observation leaves it out, because
the agent's prompt has the goal once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heedful.environments.webshop.catalogue import Product

PER_PAGE = 10
BACK, NEXT, PREVIOUS, BUY = "Back to Search", "Next >", "< Prev", "Buy Now"
SUB_PAGES = ("Description", "Features", "Reviews", "Attributes")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopPage:
    """A page: its texts, and the buttons that can be clicked."""

    texts: tuple[str, ...]
    buttons: tuple[str, ...] = ()
    searchable: bool = False

    @property
    def text(self) -> str:
        return " [SEP] ".join(self.texts)

    @property
    def actions(self) -> tuple[str, ...]:
        clicks = tuple(f"click[{button.lower()}]" for button in self.buttons)
        return ("search[...]", *clicks) if self.searchable else clicks

    def with_instruction(self, instruction: str) -> str:
        """The text in the published form."""
        return " [SEP] ".join(("Instruction:", instruction, *self.texts))


def search_page() -> ShopPage:
    return ShopPage(texts=("WebShop", "Search"), searchable=True)


def result_page(results: Sequence[Product], number: int) -> ShopPage:
    """Ten results of a search; pages are numbered from 1."""
    shown = results[(number - 1) * PER_PAGE : number * PER_PAGE]
    turns = [PREVIOUS] * (number > 1) + [NEXT] * (number * PER_PAGE < len(results))
    header = (BACK, f"Page {number} (Total results: {len(results)})", *turns)
    items = tuple(text for product in shown for text in (product.asin, product.title, product.price_text))
    buttons = (BACK, *turns, *(product.asin for product in shown))
    return ShopPage(texts=(*header, *items), buttons=buttons)


def item_page(product: Product, chosen: Mapping[str, str]) -> ShopPage:
    """A product with its options; a chosen value is marked."""
    options: list[str] = []
    for name, values in product.choices.items():
        options += [
            name,
            *(f"{value} (selected)" if chosen.get(name) == value else value for value in values),
        ]
    price = f"Price: {product.price_text}"
    texts = (BACK, PREVIOUS, *options, product.title, price, "Rating: N.A.", *SUB_PAGES, BUY)
    clickable = dict.fromkeys(value for values in product.choices.values() for value in values)
    return ShopPage(texts=texts, buttons=(BACK, PREVIOUS, *clickable, *SUB_PAGES, BUY))


def sub_page(product: Product, name: str) -> ShopPage:
    """Description, features, reviews or attributes of a product."""
    content = {
        "Description": (product.description,),
        "Features": product.bullets,
        "Reviews": (),
        "Attributes": product.attributes,
    }[name]
    return ShopPage(texts=(BACK, PREVIOUS, *(text for text in content if text)), buttons=(BACK, PREVIOUS))


def end_page(product: Product, score: float) -> ShopPage:
    """The page after a purchase."""
    score_text = ("Your score (min 0.0, max 1.0)", f"{score:.4g}")
    return ShopPage(texts=("Thank you for shopping with us!", "Purchased", product.asin, *score_text))
