"""The routes of the dashboard, for a Starlette application."""

from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import TYPE_CHECKING

from heedful.dashboard.decision_page import decision_page
from heedful.dashboard.decisions_page import decisions_page
from heedful.dashboard.forms import (
    COOKIE,
    MOST_BYTES,
    form_token,
    mark_entry,
    new_nonce,
    read_form,
    refuse_foreign,
)
from heedful.dashboard.layout import ICON_PATH, STYLE_PATH, whole_page
from heedful.dashboard.markup import element, join
from heedful.dashboard.memory_page import memory_page
from heedful.dashboard.own_view import own_view
from heedful.dashboard.policy_page import policy_page
from heedful.dashboard.today_page import today_page
from heedful.dashboard.view import DashboardView, Page, PageRequest, Section, Viewer
from heedful.errors import HeedfulError, UsageError
from heedful.extras import importing

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

PageMaker = Callable[[DashboardView, PageRequest], Awaitable[Page]]
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""`no-referrer` would hide the origin of our own forms."""
PAGES: dict[str, tuple[Section, PageMaker]] = {
    "/": ("today", today_page),
    "/memory": ("memory", memory_page),
    "/decisions": ("decisions", decisions_page),
    "/decisions/{decision}": ("decisions", decision_page),
    "/policy": ("policy", policy_page),
}
STATIC = {STYLE_PATH: ("dashboard.css", "text/css"), ICON_PATH: ("dashboard.svg", "image/svg+xml")}


def dashboard_routes(view: DashboardView) -> "list[Route]":
    """The routes of all pages, of the form and of the style sheet; their paths begin at the root."""
    with importing("serve"):
        from starlette.routing import Route

    pages = [Route(path, _page(view, *made), methods=["GET"]) for path, made in PAGES.items()]
    static = [Route(path, _static(*file), methods=["GET"]) for path, file in STATIC.items()]
    return [*pages, *static, Route("/memory/mark", _mark(view), methods=["POST"])]


def _page(
    view: DashboardView, section: Section, make: PageMaker
) -> "Callable[[Request], Awaitable[Response]]":
    async def respond(request: "Request") -> "Response":
        viewer = view.viewer(request)
        nonce = request.cookies.get(COOKIE) or new_nonce()
        asked = PageRequest(
            viewer=viewer,
            token=form_token(view.secret, viewer, nonce),
            path=request.path_params,
            query=dict(request.query_params),
        )
        try:
            seen = view if viewer.reach is None else own_view(view, viewer.reach)
            response = _html(await make(seen, asked), viewer)
        except HeedfulError as error:
            response = _problem(error, section, viewer)
        if viewer.admin and COOKIE not in request.cookies:
            response.set_cookie(
                COOKIE, nonce, httponly=True, samesite="strict", secure=request.url.scheme == "https"
            )
        return response

    return respond


def _mark(view: DashboardView) -> "Callable[[Request], Awaitable[Response]]":
    with importing("serve"):
        from starlette.responses import RedirectResponse

    async def respond(request: "Request") -> "Response":
        viewer = view.viewer(request)
        try:
            fields = read_form(await _body(request))
            refuse_foreign(view.secret, viewer, request.cookies.get(COOKIE, ""), fields, request.headers)
            path = await mark_entry(view, viewer, fields)
        except HeedfulError as error:
            return _problem(error, "memory", viewer)
        return RedirectResponse(path, status_code=303, headers=HEADERS)

    return respond


async def _body(request: "Request") -> bytes:
    """The body, up to one byte more than a form may have."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            break
    return body


def _static(name: str, kind: str) -> "Callable[[Request], Awaitable[Response]]":
    with importing("serve"):
        from starlette.responses import Response

    content = files("heedful.dashboard").joinpath(name).read_bytes()
    headers = {**HEADERS, "cache-control": "max-age=300"}

    async def respond(request: "Request") -> "Response":
        return Response(content, media_type=kind, headers=headers)

    return respond


def _html(page: Page, viewer: Viewer, status: int = 200) -> "Response":
    with importing("serve"):
        from starlette.responses import HTMLResponse

    return HTMLResponse(whole_page(page, viewer), status_code=status, headers=HEADERS)


def _problem(error: HeedfulError, section: Section, viewer: Viewer) -> "Response":
    """A page that says what went wrong; a wrong id in the address is not found."""
    status = 404 if type(error) is UsageError and section == "decisions" else error.http_status
    back = element("p", element("a", "Back to Today", href="/"))
    body = join([element("p", str(error), class_="alarm", role="alert"), back])
    return _html(Page(title="This did not work", section=section, body=body), viewer, status)
