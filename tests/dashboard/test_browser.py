"""Every page in a real Chromium: no errors, nothing from outside, usable by keyboard and on a phone."""

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from heedful import Database, Message, SqliteJournal, SqliteStore
from heedful.control import run_sync
from heedful.dashboard.view import DashboardView
from heedful.memory.entries import new_entry
from heedful.types import Mark
from tests.dashboard.conftest import LOCKED, served, view_of
from tests.dashboard.made_up import NOW, fill, made_up

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; on Debian: apt-get install chromium"),
    pytest.mark.xdist_group("browser"),
]
PAGES = ("/", "/memory", "/decisions", "/decisions/last", "/policy")


@dataclass(frozen=True)
class Visit:
    """A page in a browser, and what went wrong on it."""

    page: Page
    url: str
    problems: list[str] = field(default_factory=list)

    def open(self, path: str) -> Page:
        response = self.page.goto(self.url + path)
        assert response is not None
        assert response.status == 200
        return self.page

    def note_outside(self, address: str) -> None:
        if not address.startswith(self.url):
            self.problems.append(f"request to {address}")


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardView]:
    file = tmp_path_factory.mktemp("browser") / "made-up.db"
    fill(file, 200)
    with closing(Database(file)) as database:
        yield view_of(database, locked=LOCKED)


@pytest.fixture(scope="module")
def url(view: DashboardView) -> Iterator[str]:
    with served(view) as url:
        yield url


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def visiting(
    browser: Browser, url: str, scheme: Literal["light", "dark"] = "light", width: int = 1200
) -> Iterator[Visit]:
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800})
    visit = Visit(context.new_page(), url)
    visit.page.on("console", lambda message: visit.problems.append(f"console: {message.text}"))
    visit.page.on("pageerror", lambda error: visit.problems.append(f"script: {error}"))
    visit.page.on("request", lambda request: visit.note_outside(request.url))
    yield visit
    context.close()


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1200), ("dark", 1200), ("light", 360), ("dark", 360)]
)
def test_every_page_opens_cleanly_and_fits_the_screen(
    browser: Browser, url: str, scheme: Literal["light", "dark"], width: int
) -> None:
    with visiting(browser, url, scheme, width) as visit:
        for path in PAGES:
            page = visit.open(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            assert page.evaluate("document.styleSheets[0].cssRules.length") > 50, "the style sheet is loaded"
        assert visit.problems == []


@pytest.mark.parametrize("width", [1280, 390])
def test_a_long_word_breaks_on_every_page(browser: Browser, tmp_path: Path, width: int) -> None:
    word = "Donaudampfschifffahrt" * 20
    fill(tmp_path / "s.db", 30)
    with closing(Database(tmp_path / "s.db")) as database:
        store_word(database, word)
        locked = replace(LOCKED, study=word, moved=(word,))
        with served(view_of(database, locked=locked)) as url, visiting(browser, url, width=width) as visit:
            for path in (*PAGES, f"/decisions?q={word}&entry={word}", f"/memory?bank={word}"):
                page = visit.open(path)
                assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def store_word(database: Database, word: str) -> None:
    """A decision and a bank with a long word wherever there are words."""
    decision = next(one for at in range(30) if (one := made_up(at, n=30).decision).candidates)
    turns = (Message(role="user", content=word), Message(role="assistant", content=word))
    task = replace(decision.task, question=word, earlier=turns, scope={"user": word})
    first = replace(decision.first, text=word, answer=word)
    decision = replace(decision, id="word", at=NOW, task=task, answer=word, first=first)
    run_sync(SqliteJournal(database).record(decision))
    entry = new_entry(word, kind="fact", id=word, source=word, tags=(word,))
    run_sync(SqliteStore(database).put(word, [entry]))
    run_sync(SqliteStore(database).mark(word, [Mark(entry=word, state="retired", reason=word)]))


def follow(page: Page, control: Locator) -> None:
    """Click a link or button, and wait until the page it leads to is loaded."""
    with page.expect_navigation():
        control.click()


def test_marked_words_are_readable_and_equal_in_both_answers(browser: Browser, url: str) -> None:
    for scheme in ("light", "dark"):
        with visiting(browser, url, scheme) as visit:
            page = visit.open("/decisions?route=consult")
            follow(page, page.locator("tbody a").first)
            look = "marks => marks.map(m => [getComputedStyle(m).color, getComputedStyle(m).backgroundColor])"
            looks = page.locator("mark").evaluate_all(look)
            assert len(looks) >= 2
            assert len({tuple(one) for one in looks}) == 1
            assert contrast(*looks[0]) > 7


def test_dark_and_light_have_their_own_colours_with_enough_contrast(browser: Browser, url: str) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        with visiting(browser, url, scheme) as visit:
            style = "getComputedStyle(document.body)"
            ink, ground = (
                visit.open("/").evaluate(f"{style}.{name}") for name in ("color", "backgroundColor")
            )
            grounds.append(ground)
            assert contrast(ink, ground) > 7
    assert grounds[0] != grounds[1]


def contrast(one: str, other: str) -> float:
    """The contrast of two CSS colours (WCAG 2)."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_stored_script_is_shown_and_not_run(browser: Browser, url: str) -> None:
    with visiting(browser, url) as visit:
        page = visit.open("/memory")
        assert page.title() == "Memory · heedful"
        assert page.get_by_text("<script>document.title = 'taken over'</script>").is_visible()
        assert visit.problems == []


def test_the_skip_link_comes_first_and_leads_to_the_content(browser: Browser, url: str) -> None:
    with visiting(browser, url) as visit:
        page = visit.open("/")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        assert page.evaluate("document.activeElement.getBoundingClientRect().x") >= 0
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"


def test_an_entry_is_retired_and_restored_by_keyboard(
    browser: Browser, url: str, view: DashboardView
) -> None:
    with visiting(browser, url) as visit:
        page = visit.open("/memory")
        change(page, "Retire old-refunds…", "outdated")
        assert page.url.startswith(f"{url}/memory?")
        assert page.get_by_text("outdated (ana)").is_visible()
        assert state(view) == "retired"
        change(page, "Restore old-refunds…", "still true")
        assert state(view) == "active"
        assert visit.problems == []


def change(page: Page, summary: str, reason: str) -> None:
    """Tab to the entry's form, open it, type a reason and send it."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('aria-label')") == summary:
            break
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type(reason)
    page.keyboard.press("Tab")
    with page.expect_navigation():
        page.keyboard.press("Enter")


def state(view: DashboardView) -> str:
    return run_sync(view.store.entry("desk", "old-refunds")).state


def test_a_decision_is_found_by_searching(browser: Browser, url: str) -> None:
    with visiting(browser, url, width=360) as visit:
        page = visit.open("/decisions")
        page.get_by_label("Search").fill("pallet")
        page.get_by_label("Route").select_option("consulted")
        follow(page, page.get_by_role("button", name="Apply"))
        follow(page, page.get_by_role("link", name="How many bags fit a pallet?").first)
        assert page.get_by_role("heading", name="Second answer: notes").is_visible()
        assert page.locator("mark").all_text_contents() == ["40", "48"]
        assert visit.problems == []
