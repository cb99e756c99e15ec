"""Forms that change something: only for admins, and only from a page of the dashboard itself."""

import hmac
import secrets
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from heedful.dashboard.view import DashboardView, Viewer
from heedful.errors import UsageError
from heedful.types import Mark, State

COOKIE = "heedful-form"
MOST_BYTES = 16_384
STATES: Mapping[str, State] = {"retired": "retired", "active": "active"}


class ForbiddenError(UsageError):
    """The viewer may not do this, or the form is not from a page of the dashboard."""

    http_status = 403


def new_nonce() -> str:
    """A random value for the cookie that the tokens of a browser belong to."""
    return secrets.token_hex(16)


def form_token(secret: bytes, viewer: Viewer, nonce: str) -> str:
    """A token that is valid for one viewer in one browser."""
    return hmac.new(secret, f"{nonce}\n{viewer.name}".encode(), "sha256").hexdigest()


def refuse_foreign(
    secret: bytes, viewer: Viewer, nonce: str, fields: Mapping[str, str], headers: Mapping[str, str]
) -> None:
    """Raise `ForbiddenError` unless an admin sent the form from a page of this host."""
    if not viewer.admin:
        raise ForbiddenError(f"{viewer.name} may not change memory; ask an administrator")
    origin = urlsplit(headers.get("origin", ""))
    if not origin.netloc or origin.netloc != headers.get("host"):
        raise ForbiddenError(
            "the form was not sent from this dashboard; open the page here and send it again"
        )
    expected = form_token(secret, viewer, nonce)
    if not nonce or not hmac.compare_digest(expected.encode(), fields.get("token", "").encode()):
        raise ForbiddenError("the form is out of date; reload the page and send it again")


def read_form(body: bytes) -> dict[str, str]:
    """The fields of a URL-encoded form."""
    if len(body) > MOST_BYTES:
        raise UsageError(f"the form has {len(body)} bytes; at most {MOST_BYTES} are allowed")
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=20))
    except ValueError as error:
        raise UsageError(f"the form cannot be read: {error}; reload the page and send it again") from error


async def mark_entry(view: DashboardView, viewer: Viewer, fields: Mapping[str, str]) -> str:
    """Change the state of an entry; return the path of the page to show next."""
    bank, entry, reason = (fields.get(name, "").strip() for name in ("bank", "entry", "reason"))
    state = STATES.get(fields.get("state", ""))
    if state is None or not bank or not entry:
        raise UsageError("the form names no entry or no state; reload the page and send it again")
    if not reason:
        raise UsageError(f"entry {entry!r} was not changed: state a reason")
    if bank not in await view.store.banks() or entry not in {
        one.id for one in await view.store.entries(bank)
    }:
        raise UsageError(f"bank {bank!r} has no entry {entry!r}; reload the page")
    await view.store.mark(bank, [Mark(entry=entry, state=state, reason=f"{reason} ({viewer.name})")])
    back = fields.get("back", "")
    return back if back == "/memory" or back.startswith("/memory?") else "/memory"
