"""The ASGI application: all routes of the server."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heedful.extras import importing
from heedful.serve import chat_route, decision_routes, status_routes
from heedful.serve.endpoint import Endpoint, Handler
from heedful.serve.refusal import error_body
from heedful.serve.reply import JSON
from heedful.serve.service import Service

if TYPE_CHECKING:
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Receive, Scope, Send

CHAT_PATH = "/v1/chat/completions"
ROUTES: Sequence[tuple[str, str, Handler]] = (
    ("POST", CHAT_PATH, chat_route.chat),
    ("POST", "/v1/completions", status_routes.completions),
    ("POST", "/v1/embeddings", status_routes.embeddings),
    ("GET", "/v1/models", status_routes.models),
    ("GET", "/v1/models/{id:path}", status_routes.one_model),
    ("GET", "/v1/decisions/{id}", decision_routes.show_decision),
    ("POST", "/v1/feedback", decision_routes.give_feedback),
    ("POST", "/v1/admin/reload", status_routes.reload),
    ("GET", "/metrics", status_routes.metrics),
)
OPEN_ROUTES: Sequence[tuple[str, str, Handler]] = (
    ("GET", "/healthz", status_routes.health),
    ("GET", "/readyz", status_routes.ready),
    ("GET", "/openapi.json", status_routes.openapi),
)
"""Routes without a key, for probes of the machine that runs the server."""


@dataclass(frozen=True, slots=True)
class ServerApp:
    """Gives chat requests to their endpoint at once: a router and its layers cost as much as a connection."""

    chat: Endpoint
    routes: "ASGIApp"

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "http" and scope["path"] == CHAT_PATH and scope["method"] == "POST":
            await self.chat(scope, receive, send)
        else:
            await self.routes(scope, receive, send)


def make_app(service: Service, pages: "Sequence[BaseRoute]" = ()) -> ServerApp:
    """The application; `pages` adds routes, such as a dashboard at `/`."""
    with importing("serve"):
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.requests import Request
        from starlette.responses import Response
        from starlette.routing import Route

    def endpoint(path: str, handler: Handler, open: bool) -> Endpoint:
        return Endpoint(
            service=service, handler=handler, path=path, open=open, counted=path.startswith("/v1/")
        )

    def route(method: str, path: str, handler: Handler, *, open: bool) -> Route:
        return Route(path, endpoint(path, handler, open), methods=[method])

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await service.aclose()

    keyed = [route(*one, open=False) for one in ROUTES]
    free = [route(*one, open=True) for one in OPEN_ROUTES]

    async def refuse(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        message = f"there is no {request.method} {request.url.path}; GET /openapi.json describes the routes"
        return Response(error_body(status, message), status, media_type=JSON)

    unknown = {404: refuse, 405: refuse}
    routes = Starlette(routes=[*keyed, *free, *pages], lifespan=lifespan, exception_handlers=unknown)
    return ServerApp(chat=endpoint(CHAT_PATH, chat_route.chat, open=False), routes=routes)
