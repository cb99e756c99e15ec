"""The shop as an environment: search, open an item, set its options, buy."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from heedful.environments.making import EnvironmentOptions
from heedful.environments.webshop.catalogue import Product, read_products
from heedful.environments.webshop.goals import SIDES, ShopGoal, make_goals
from heedful.environments.webshop.pages import (
    BACK,
    BRIEF_PER_PAGE,
    BUY,
    NEXT,
    PER_PAGE,
    PREVIOUS,
    SUB_PAGES,
    ShopPage,
    end_page,
    item_page,
    result_page,
    search_page,
    sub_page,
)
from heedful.environments.webshop.reward import reward
from heedful.environments.webshop.search import ShopSearch
from heedful.errors import MissingError, UsageError
from heedful.types import EpisodeSide, Observation, Spec, digest_of

ACTION = re.compile(r"(search|click)\[(.*)\]", re.DOTALL)
INVALID = "That action is not possible here; nothing changed."


class WebShopSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How pages read: as published, or brief."""

    pages: Literal["published", "brief"] = "published"

    @property
    def per_page(self) -> int:
        return BRIEF_PER_PAGE if self.pages == "brief" else PER_PAGE


@dataclass(slots=True)
class Visit:
    """Where a customer is."""

    goal: ShopGoal
    per_page: int = PER_PAGE
    """Results per page."""
    page: ShopPage = field(default_factory=search_page)
    results: list[Product] = field(default_factory=list)
    number: int = 1
    """Of the page of results."""
    item: Product | None = None
    sub: str = ""
    """The open sub-page of the item."""
    options: dict[str, str] = field(default_factory=dict)
    score: float = 0.0
    done: bool = False


class WebShop:
    """The published rules over a catalogue; a seed is the number of a goal."""

    def __init__(self, products: Sequence[Product], settings: WebShopSettings | None = None) -> None:
        self._settings = settings or WebShopSettings()
        self._products = {product.asin.lower(): product for product in products}
        self.goals = make_goals(products)
        self._search = ShopSearch(products)
        self._digest = digest_of([[product.asin, product.text, product.price] for product in products])
        self._visit: Visit | None = None

    @property
    def spec(self) -> Spec:
        return {
            "environment": "webshop",
            "products": self._digest[:16],
            "goals": len(self.goals),
            "pages": self._settings.pages,
        }

    def seeds(self, side: EpisodeSide) -> Sequence[int]:
        return range(len(self.goals))[SIDES[side]]

    def reset(self, seed: int) -> Observation:
        if not 0 <= seed < len(self.goals):
            raise UsageError(f"WebShop has no goal {seed}; choose one from 0 to {len(self.goals) - 1}")
        self._visit = Visit(self.goals[seed], self._settings.per_page)
        return self._observed(self._visit)

    def step(self, action: str) -> Observation:
        visit = self._current()
        match = ACTION.fullmatch(action.strip())
        if visit.done or match is None or not _do(visit, match[1], match[2].strip(), self):
            return self._observed(visit, INVALID)
        return self._observed(visit)

    def close(self) -> None:
        """Nothing to release."""

    def gold(self, seed: int) -> Sequence[str]:
        """Search by the goal's text, turn pages to the target, set its options, buy it."""
        goal = self.goals[seed]
        query = next((query for query in _queries(goal) if goal.target in self._search.find(query)), None)
        if query is None:
            return ()
        place = self._search.find(query).index(goal.target)
        turns = [f"click[{NEXT.lower()}]"] * (place // self._settings.per_page)
        item = f"click[{goal.target.asin.lower()}]"
        options = [f"click[{value}]" for value in goal.options.values()]
        return (f"search[{query}]", *turns, item, *options, f"click[{BUY.lower()}]")

    def breaks(self, action: str) -> str | None:
        """Refuse to buy before the options that the goal names are set."""
        visit = self._current()
        if visit.item is None or action.strip().lower() != f"click[{BUY.lower()}]":
            return None
        goal = visit.goal.text.lower()
        for name, values in visit.item.choices.items():
            named = [value for value in values if _names(goal, value)]
            if named and visit.options.get(name) not in named:
                return "contract:options"
        return None

    def find(self, query: str) -> list[Product]:
        return self._search.find(query)

    def product(self, asin: str) -> Product | None:
        return self._products.get(asin.lower())

    def _current(self) -> Visit:
        if self._visit is None:
            raise UsageError("reset the shop before a step")
        return self._visit

    def _observed(self, visit: Visit, notice: str = "") -> Observation:
        goal, page, brief = visit.goal, visit.page, self._settings.pages == "brief"
        actions = page.brief_actions if brief else page.actions
        return Observation(
            text=" ".join(filter(None, (notice, page.brief if brief else page.text))),
            actions=() if visit.done else actions,
            score=visit.score,
            done=visit.done,
            goal=goal.text,
            kind=goal.target.category,
            subject=goal.target.asin,
        )


def _queries(goal: ShopGoal) -> tuple[str, ...]:
    """Searches that may find the target: the whole instruction, then its title."""
    return (goal.target.instruction or "", goal.text, goal.target.title)


def _names(goal: str, value: str) -> bool:
    """Whether a goal names an option's value, not only as a part of a longer word."""
    return re.search(rf"(?<![\w-]){re.escape(value)}(?![\w-])", goal) is not None


def _do(visit: Visit, verb: str, argument: str, shop: WebShop) -> bool:
    """Carry out an action; whether it was possible."""
    if verb == "search":
        if not visit.page.searchable or not argument:
            return False
        visit.results, visit.number = shop.find(argument), 1
        _show_results(visit)
        return True
    buttons = {button.lower(): button for button in visit.page.buttons}
    button = buttons.get(argument.lower())
    if button is None:
        return False
    _click(visit, button, shop)
    return True


def _click(visit: Visit, button: str, shop: WebShop) -> None:
    item = visit.item
    if button == BACK:
        visit.item, visit.sub, visit.options, visit.page = None, "", {}, search_page()
    elif button == NEXT or (button == PREVIOUS and item is None):
        visit.number += 1 if button == NEXT else -1
        _show_results(visit)
    elif button == PREVIOUS:
        if visit.sub:
            _show_item(visit)
        else:
            visit.item, visit.options = None, {}
            _show_results(visit)
    elif item is None:
        visit.item = shop.product(button)
        _show_item(visit)
    elif button == BUY:
        visit.score, visit.done = reward(item, visit.options, visit.goal), True
        visit.page = end_page(item, visit.score)
    elif button in SUB_PAGES:
        visit.sub, visit.page = button, sub_page(item, button)
    else:
        names = [name for name, values in item.choices.items() if button in values]
        name = next((name for name in names if visit.options.get(name) != button), names[0])
        visit.options = {**visit.options, name: button}
        _show_item(visit)


def _show_results(visit: Visit) -> None:
    visit.page = result_page(visit.results, visit.number, visit.per_page)


def _show_item(visit: Visit) -> None:
    assert visit.item is not None, "an item is open"
    visit.sub, visit.page = "", item_page(visit.item, visit.options)


def make_webshop(options: EnvironmentOptions) -> WebShop:
    """The shop with the products of the data folder."""
    settings = options.read(WebShopSettings, "webshop")
    if options.data is None:
        raise MissingError("WebShop needs its products; set HEEDFUL_DATA or use --data FOLDER")
    return WebShop(read_products(options.data), settings)
