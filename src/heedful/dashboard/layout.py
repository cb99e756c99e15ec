"""The frame of every page, and the parts that pages share."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import urlencode

from heedful.dashboard.markup import Child, Markup, element
from heedful.dashboard.view import Page, Viewer

SECTIONS = {"today": ("/", "Today"), "memory": ("/memory", "Memory")}
SECTIONS |= {"decisions": ("/decisions", "Decisions"), "policy": ("/policy", "Policy")}
STYLE_PATH, ICON_PATH = "/dashboard.css", "/dashboard.svg"


def whole_page(page: Page, viewer: Viewer) -> str:
    """A page with its frame: skip link, navigation, content."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{page.title} · heedful"),
        element("link", rel="stylesheet", href=STYLE_PATH),
        element("link", rel="icon", href=ICON_PATH, type="image/svg+xml"),
    )
    links = [
        element("a", name, href=path, aria_current="page" if section == page.section else None)
        for section, (path, name) in SECTIONS.items()
    ]
    rights = "may change memory" if viewer.admin else "may read" if viewer.reach is None else "own decisions"
    body = element(
        "body",
        element("a", "Skip to the content", href="#content", class_="skip"),
        element(
            "header",
            element("span", "heedful", class_="brand"),
            element("nav", links, aria_label="Pages"),
            element("span", f"{viewer.name}, {rights}", class_="viewer"),
        ),
        element("main", element("h1", page.title), page.body, id="content", tabindex="-1"),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def table(
    caption: str,
    head: Sequence[str],
    rows: Sequence[Sequence[Child]],
    *,
    numbers: Iterable[int] = (),
    empty: str,
    narrow: bool = False,
) -> Markup:
    """A table whose first cells name the rows; on a small screen rows become cards, unless it is narrow.

    A cell that is None has a dash, and no line on a card.
    """
    if not rows:
        return element("p", empty, class_="empty")
    numeric = frozenset(numbers)
    columns = [
        element("th", name, scope="col", role="columnheader", class_="n" if at in numeric else None)
        for at, name in enumerate(head)
    ]
    return element(
        "table",
        element("caption", caption),
        element("thead", element("tr", columns, role="row"), role="rowgroup"),
        element("tbody", [_row(head, row, numeric) for row in rows], role="rowgroup"),
        role="table",
        class_=None if narrow else "cards",
    )


def _row(head: Sequence[str], row: Sequence[Child], numeric: frozenset[int]) -> Markup:
    first, *rest = row
    cells = []
    for at, (name, cell) in enumerate(zip(head[1:], rest, strict=True), start=1):
        look = "absent" if cell is None else "n" if at in numeric else None
        cells.append(element("td", "–" if cell is None else cell, role="cell", data_label=name, class_=look))
    return element("tr", element("th", first, scope="row", role="rowheader"), cells, role="row")


def tile(name: str, value: str, *details: Child, tone: str = "") -> Markup:
    """A number with its name, what it is out of, and its interval."""
    lines = [element("span", detail, class_="detail") for detail in details]
    body = element("dd", element("b", value), lines, class_=tone or None)
    return element("div", element("dt", name), body, class_="tile")


def choice_links(label: str, path: str, name: str, choices: Mapping[str, str], chosen: str) -> Markup:
    """Links that choose a value of one parameter."""
    links = [
        element("a", words, href=link(path, {name: value}), aria_current="true" if value == chosen else None)
        for value, words in choices.items()
    ]
    return element("nav", element("span", label), links, class_="choices", aria_label=label)


def select(label: str, name: str, choices: Mapping[str, str], chosen: str | None) -> Markup:
    """A labelled choice in a form of filters; the empty value means any."""
    options = [
        element("option", words, value=value, selected=value == (chosen or ""))
        for value, words in choices.items()
    ]
    return element("label", label, element("select", options, name=name))


def field(label: str, name: str, value: str | None, **attributes: str | int | bool) -> Markup:
    """A labelled line of text in a form."""
    return element("label", label, element("input", name=name, value=value or "", **attributes))


def filters(path: str, *fields: Markup) -> Markup:
    """A form that reads the same page with other parameters."""
    button = element("button", "Apply", type="submit")
    return element("form", fields, button, action=path, method="get", class_="filters", role="search")


def link(path: str, query: Mapping[str, str | None]) -> str:
    """A path with its parameters; empty ones are left out."""
    given = {name: value for name, value in query.items() if value}
    return f"{path}?{urlencode(given)}" if given else path


def moment(at: float) -> Markup:
    """A time in UTC, to the minute."""
    when = datetime.fromtimestamp(at, UTC)
    return element("time", f"{when:%Y-%m-%d %H:%M} UTC", datetime=when.isoformat())


def section(title: str, *parts: Child) -> Markup:
    return element("section", element("h2", title), *parts)


def note(text: str) -> Markup:
    return element("p", text, class_="note")
