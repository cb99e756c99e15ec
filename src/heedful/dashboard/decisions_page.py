"""Decisions: find the answer that somebody asks about."""

from collections.abc import Mapping, Sequence
from typing import Literal, cast
from urllib.parse import quote

from heedful.dashboard.layout import field, filters, link, moment, select, table
from heedful.dashboard.markup import Markup, element, join
from heedful.dashboard.today import SECONDS, WORDS
from heedful.dashboard.view import DashboardView, Page, PageRequest
from heedful.records import Decision, DecisionFilter, Feedback

PER_PAGE = 25
ROUTES = {"": "any", "keep": "kept", "consult": "consulted"}
VERDICTS = {"": "any", "accept": "accepted", "rollback": "rolled back"}
GRADED = {"": "any", "yes": "graded", "no": "not graded"}
WINDOWS = {"": "any time", **{name: f"last {words}" for name, words in WORDS.items()}}
PARAMETERS = ("q", "window", "route", "verdict", "bank", "entry", "graded")


async def decisions_page(view: DashboardView, request: PageRequest) -> Page:
    page = request.page
    wanted = filter_of(request, view.clock())
    found = await view.journal.select(wanted, PER_PAGE + 1, (page - 1) * PER_PAGE)
    decisions, more = found[:PER_PAGE], len(found) > PER_PAGE
    feedback = await view.feedback.of(decisions)
    rows = [_row(decision, feedback.get(decision.id, ())) for decision in decisions]
    head = ("Question", "Answer", "Route", "Verdict", "Feedback", "Time")
    body = join(
        [
            _filters(request, await view.store.banks()),
            table("Decisions, newest first", head, rows, empty="No decision passes these filters."),
            _pages(request, page, more),
        ]
    )
    return Page(title="Decisions", section="decisions", body=body)


def filter_of(request: PageRequest, now: float) -> DecisionFilter:
    """The filter that the parameters of a page ask for; unknown values filter nothing."""
    window, route, verdict = (request.asked(name) for name in ("window", "route", "verdict"))
    seconds = SECONDS.get(window or "")
    return DecisionFilter(
        since=None if seconds is None else now - seconds,
        route=cast(Literal["keep", "consult"], route) if route in ROUTES else None,
        verdict=cast(Literal["accept", "rollback"], verdict) if verdict in VERDICTS else None,
        bank=request.asked("bank"),
        entry=request.asked("entry"),
        graded={"yes": True, "no": False}.get(request.asked("graded") or ""),
        search=request.asked("q"),
    )


def _filters(request: PageRequest, banks: Mapping[str, int]) -> Markup:
    return filters(
        "/decisions",
        field("Search", "q", request.asked("q"), type="search", placeholder="question or answer"),
        select("Time", "window", WINDOWS, request.asked("window")),
        select("Route", "route", ROUTES, request.asked("route")),
        select("Verdict", "verdict", VERDICTS, request.asked("verdict")),
        select("Bank", "bank", {"": "any", **{name: name for name in banks}}, request.asked("bank")),
        field("Recalled entry", "entry", request.asked("entry"), placeholder="entry id"),
        select("Feedback", "graded", GRADED, request.asked("graded")),
    )


def _row(decision: Decision, given: Sequence[Feedback]) -> list[str | Markup | None]:
    question = decision.task.question or decision.task.search_text
    verdict = None if decision.verdict is None else VERDICTS[decision.verdict.choice]
    return [
        element("a", _brief(question), href=f"/decisions/{quote(decision.id, safe='')}"),
        _brief(decision.answer),
        ROUTES[decision.route.choice],
        verdict,
        ", ".join(_judged(decision, one) for one in given) or None,
        moment(decision.at),
    ]


def _judged(decision: Decision, given: Feedback) -> str:
    """Feedback on the answer that the user got: a known answer says whether it was right."""
    place = 0 if decision.chosen is None else decision.chosen + 1
    if given.kind != "answer" or place >= len(given.grades):
        return feedback_words(given)
    return "right" if given.grades[place] else f"wrong, {feedback_words(given)}"


def feedback_words(given: Feedback) -> str:
    """A piece of feedback in a few words."""
    if given.kind == "grade":
        return given.value
    if given.kind == "preference":
        return "no preference" if given.value == "tie" else f"prefers {given.value}"
    return f"right answer: {_brief(given.value)}" if given.value else "right answer purged"


def _brief(text: str, most: int = 120) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _pages(request: PageRequest, page: int, more: bool) -> Markup | None:
    query = {name: request.asked(name) for name in PARAMETERS}
    links = []
    if page > 1:
        links.append(
            element("a", "← Newer", href=link("/decisions", {**query, "page": str(page - 1)}), rel="prev")
        )
    if more:
        links.append(
            element("a", "Older →", href=link("/decisions", {**query, "page": str(page + 1)}), rel="next")
        )
    return element("nav", links, f" page {page}", class_="pages", aria_label="Pages") if links else None
