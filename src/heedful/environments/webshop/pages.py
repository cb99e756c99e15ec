"""The pages of the shop: their texts and their buttons.

A page is a list of texts, joined with [SEP] as in the published text interface. There, every page but
the last begins with the instruction; `with_instruction` adds it. An observation leaves it out, because
the agent's prompt has the goal once. A page also has a brief form with about a quarter of the tokens: five
results per page, a text that leaves out what the list of actions says and shortens titles, and a list of
actions that begins with items and options and has an option only until it is chosen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heedful.environments.webshop.catalogue import Product

PER_PAGE = 10
BRIEF_PER_PAGE = 5
BRIEF_TITLE = 50
"""Characters of a title among brief results."""
BRIEF_TEXT = 400
"""Characters of a brief title or sub-page."""
BACK, NEXT, PREVIOUS, BUY = "Back to Search", "Next >", "< Prev", "Buy Now"
SUB_PAGES = ("Description", "Features", "Reviews", "Attributes")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopPage:
    """A page: its texts, and the buttons that can be clicked."""

    texts: tuple[str, ...]
    brief: str
    buttons: tuple[str, ...] = ()
    brief_buttons: tuple[str, ...] = ()
    """The buttons that the brief form offers; the others can still be clicked."""
    searchable: bool = False

    @property
    def text(self) -> str:
        return " [SEP] ".join(self.texts)

    @property
    def actions(self) -> tuple[str, ...]:
        return self._actions(self.buttons)

    @property
    def brief_actions(self) -> tuple[str, ...]:
        return self._actions(self.brief_buttons)

    def _actions(self, buttons: Sequence[str]) -> tuple[str, ...]:
        clicks = tuple(f"click[{button.lower()}]" for button in buttons)
        return ("search[...]", *clicks) if self.searchable else clicks

    def with_instruction(self, instruction: str) -> str:
        """The text in the published form."""
        return " [SEP] ".join(("Instruction:", instruction, *self.texts))


def search_page() -> ShopPage:
    return ShopPage(texts=("WebShop", "Search"), brief="You are on the search page.", searchable=True)


def result_page(results: Sequence[Product], number: int, per_page: int = PER_PAGE) -> ShopPage:
    """Some results of a search; pages are numbered from 1."""
    shown = results[(number - 1) * per_page : number * per_page]
    turns = [PREVIOUS] * (number > 1) + [NEXT] * (number * per_page < len(results))
    header = (BACK, f"Page {number} (Total results: {len(results)})", *turns)
    items = tuple(text for product in shown for text in (product.asin, product.title, product.price_text))
    lines = (
        f"{product.asin.lower()} {product.price_text} {product.title[:BRIEF_TITLE]}" for product in shown
    )
    brief = "\n".join((f"Results, page {number}:", *lines)) if shown else "The search found nothing."
    asins = [product.asin for product in shown]
    return ShopPage(
        texts=(*header, *items),
        brief=brief,
        buttons=(BACK, *turns, *asins),
        brief_buttons=(*asins, *turns, BACK),
    )


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
    unchosen = dict.fromkeys(
        value for name, values in product.choices.items() if name not in chosen for value in values
    )
    chosen_text = "; ".join(f"{name}: {chosen.get(name, 'not chosen yet')}" for name in product.choices)
    brief = "\n".join(filter(None, (f"Item: {product.title[:BRIEF_TITLE]}", price, chosen_text)))
    return ShopPage(
        texts=texts,
        brief=brief,
        buttons=(BACK, PREVIOUS, *clickable, *SUB_PAGES, BUY),
        brief_buttons=(*unchosen, BUY, *SUB_PAGES, PREVIOUS, BACK),
    )


def sub_page(product: Product, name: str) -> ShopPage:
    """Description, features, reviews or attributes of a product."""
    content = {
        "Description": (product.description,),
        "Features": product.bullets,
        "Reviews": (),
        "Attributes": product.attributes,
    }[name]
    texts = tuple(text for text in content if text)
    brief = f"{name} of the item: {' '.join(texts)[:BRIEF_TEXT] or 'none'}"
    buttons = (BACK, PREVIOUS)
    return ShopPage(texts=(*buttons, *texts), brief=brief, buttons=buttons, brief_buttons=buttons)


def end_page(product: Product, score: float) -> ShopPage:
    """The page after a purchase."""
    score_text = ("Your score (min 0.0, max 1.0)", f"{score:.4g}")
    texts = ("Thank you for shopping with us!", "Purchased", product.asin, *score_text)
    return ShopPage(texts=texts, brief=f"Bought {product.asin}; score {score:.4g}.")
