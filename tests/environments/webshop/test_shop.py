"""The shop: its pages, its goals, its solutions and its contract."""

import json
from pathlib import Path

import pytest

from heedful.environments import EnvironmentOptions, make_environment
from heedful.environments.webshop.catalogue import FILE, Product, read_products
from heedful.environments.webshop.pages import item_page, result_page, search_page
from heedful.environments.webshop.shop import INVALID, WebShop, WebShopSettings
from heedful.errors import MissingError, UsageError
from heedful.testing import check_environment
from tests.environments.making import product, write_products


@pytest.fixture(scope="module")
def products(tmp_path_factory: pytest.TempPathFactory) -> list[Product]:
    return read_products(write_products(tmp_path_factory.mktemp("data")))


@pytest.fixture(scope="module")
def shop(products: list[Product]) -> WebShop:
    return WebShop(products)


def test_the_shop_is_an_environment(products: list[Product]) -> None:
    check_environment(lambda: WebShop(products))


def test_options_are_expanded_to_goals_that_name_them(shop: WebShop) -> None:
    assert len(shop.goals) == 400 * 4
    goal = shop.goals[7]
    assert all(f"{name}: {value}" in goal.text for name, value in goal.options.items())
    assert f"price lower than {goal.price_cap:.2f} dollars" in goal.text
    assert goal.target.price < goal.price_cap


def test_buying_the_gold_item_with_its_options_scores_one_on_every_goal(shop: WebShop) -> None:
    scores = set()
    for seed in range(0, len(shop.goals), 16):
        seen = shop.reset(seed)
        for action in shop.gold(seed):
            assert shop.breaks(action) is None
            seen = shop.step(action)
        scores.add((seen.score, seen.done))
    assert scores == {(1.0, True)}


def test_buying_the_gold_item_without_its_options_scores_less(shop: WebShop) -> None:
    search, *turns, item, _, _, buy = shop.gold(3)
    shop.reset(3)
    for action in (search, *turns, item):
        shop.step(action)
    assert shop.breaks(buy) == "contract:options"
    seen = shop.step(buy)
    assert seen.done
    assert seen.score == pytest.approx(2 / 4)


def test_the_pages_have_the_documented_form(products: list[Product]) -> None:
    first = products[0]
    assert search_page().with_instruction("Buy it") == "Instruction: [SEP] Buy it [SEP] WebShop [SEP] Search"
    page = result_page(products[:12], 2)
    assert page.text.startswith("Back to Search [SEP] Page 2 (Total results: 12) [SEP] < Prev [SEP] B0000000")
    item = item_page(first, {"size": "large"}).text
    assert item == (
        "Back to Search [SEP] < Prev [SEP] color [SEP] red [SEP] sky blue [SEP] size [SEP] small [SEP] "
        "large (selected) [SEP] Velkirk mug model 0 for the kitchen table [SEP] Price: $30.0 [SEP] "
        "Rating: N.A. [SEP] Description [SEP] Features [SEP] Reviews [SEP] Attributes [SEP] Buy Now"
    )


def test_a_customer_can_look_around_and_go_back(shop: WebShop) -> None:
    shop.reset(0)
    results = shop.step("search[velkirk kettle]")
    assert "click[next >]" in results.actions
    second = shop.step("click[next >]")
    assert "Page 2" in second.text
    assert shop.step("click[< prev]") == results
    asin = results.actions[2]
    item = shop.step(asin)
    assert "dishwasher safe" in shop.step("click[description]").text
    assert shop.step("click[< prev]") == item
    assert shop.step("click[red]").text != item.text
    assert shop.step("click[< prev]") == results
    assert shop.step(asin) == item
    assert shop.step("click[back to search]").actions == ("search[...]",)


@pytest.mark.parametrize("action", ["click[buy now]", "search[]", "dance", "click[b000000001]", "search[x"])
def test_an_invalid_action_changes_nothing_and_says_so(shop: WebShop, action: str) -> None:
    before = shop.reset(1)
    after = shop.step(action)
    assert after.text == f"{INVALID} {before.text}"
    assert (after.actions, after.score, after.done) == (before.actions, 0.0, False)


def test_a_search_that_finds_nothing_shows_an_empty_page(shop: WebShop) -> None:
    shop.reset(1)
    assert "Total results: 0" in shop.step("search[zebra]").text


def test_missing_products_are_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="HEEDFUL_DATA") as refused:
        make_environment("webshop", EnvironmentOptions())
    assert refused.value.exit_code == 3
    with pytest.raises(MissingError, match=r"products\.jsonl cannot be read"):
        make_environment("webshop", EnvironmentOptions(data=tmp_path))


def test_a_line_that_is_no_product_and_a_double_asin_are_refused(tmp_path: Path) -> None:
    file = write_products(tmp_path, count=1) / FILE
    file.write_text(file.read_text() + '{"title": 3}\n')
    with pytest.raises(UsageError, match="line 2 is not a product"):
        read_products(tmp_path)
    file.write_text(2 * (json.dumps(product(1)) + "\n"))
    with pytest.raises(UsageError, match="more than once"):
        read_products(tmp_path)


def test_a_goal_that_does_not_exist_is_refused(shop: WebShop) -> None:
    with pytest.raises(UsageError, match="choose one from 0 to 1599"):
        shop.reset(1600)
    with pytest.raises(UsageError, match="reset the shop"):
        WebShop([]).step("search[x]")


def test_brief_pages_offer_items_first_and_an_option_until_it_is_chosen(products: list[Product]) -> None:
    check_environment(lambda: WebShop(products, WebShopSettings(pages="brief")))
    brief, whole = WebShop(products, WebShopSettings(pages="brief")), WebShop(products)
    search, item, first, second, buy = whole.gold(7)
    for shop in (brief, whole):
        shop.reset(7)
    short, long = brief.step(search), whole.step(search)
    assert len(short.text) < len(long.text)
    assert short.actions[0] == f"click[{short.text.splitlines()[1].split()[0]}]"
    assert short.actions[-1] == "click[back to search]"
    assert "color: not chosen yet; size: not chosen yet" in brief.step(item).text
    seen = brief.step(first)
    value = first.removeprefix("click[").removesuffix("]")
    assert f"color: {value}; size: not chosen yet" in seen.text
    assert first not in seen.actions
    assert second in seen.actions
    brief.step(second)
    assert brief.step(buy).score == 1.0


def test_an_unknown_form_of_pages_is_refused(tmp_path: Path) -> None:
    options = EnvironmentOptions(data=write_products(tmp_path, count=4), options={"pages": "short"})
    with pytest.raises(UsageError, match="short"):
        make_environment("webshop", options)
