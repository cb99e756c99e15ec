"""The dashboard of a running server: who may see it, and what it reads."""

import base64
import binascii
from collections.abc import Callable
from typing import TYPE_CHECKING

from heedful.dashboard.routes import dashboard_routes
from heedful.dashboard.view import DashboardView, LockedPolicy, Reach, Viewer
from heedful.extras import importing
from heedful.memory.storage import Storage
from heedful.serve.callers import Caller
from heedful.serve.refusal import RefusalError
from heedful.serve.service import Service
from heedful.types import CALLER

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import Route

LOCAL_NAME = "local"


def operator_pages(service: Service, store: Storage) -> "list[Route]":
    """The routes of the dashboard over a store."""
    return dashboard_routes(
        DashboardView(
            store=store,
            journal=store.journal,
            feedback=store.feedback,
            viewer=lambda request: viewer_of(service, request),
            locked=lambda: locked_now(service),
        )
    )


def locked_now(service: Service, allowed: Callable[[str], bool] = bool) -> LockedPolicy | None:
    """The policy of requests that name none; None if it is not allowed."""
    first = service.shelf.policies[0]
    if not allowed(first.name):
        return None
    return first.locked or LockedPolicy(policy=first.controller.policy)


def viewer_of(service: Service, request: "Request") -> Viewer:
    """The person behind a request: a key as the password of basic authentication.

    Only an admin sees the decisions of all callers.
    """
    with importing("serve"):
        from starlette.exceptions import HTTPException

    headers = dict(request.scope["headers"])
    try:
        service.admission.check_headers(request.scope["headers"], headers)
        caller = _caller(service, request)
    except RefusalError as error:
        challenge = {"www-authenticate": 'Basic realm="heedful"'} if error.status == 401 else None
        raise HTTPException(error.status, str(error), challenge) from error
    admin = caller.rights.admin
    return Viewer(
        name=caller.name or LOCAL_NAME, admin=admin, reach=None if admin else reach_of(service, caller)
    )


def reach_of(service: Service, caller: Caller) -> Reach:
    """What the dashboard shows to a caller without admin rights."""
    rights = caller.rights

    def sees_scope(key: str, value: str) -> bool:
        return value == caller.name if key == CALLER else rights.allows_scope(key, value)

    return Reach(
        caller=caller.name,
        bank=rights.allows_bank,
        scope=sees_scope,
        locked=lambda: locked_now(service, rights.allows_policy),
    )


def _caller(service: Service, request: "Request") -> Caller:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        try:
            given = base64.b64decode(given, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            given = ""
    return service.callers.caller_of(f"Bearer {given}")
