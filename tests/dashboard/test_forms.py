"""Who may send a form, and from where."""

import pytest

from heedful.dashboard.forms import ForbiddenError, form_token, read_form, refuse_foreign
from heedful.dashboard.view import Viewer
from heedful.errors import UsageError
from tests.dashboard.conftest import ANA

HOST = {"host": "dash:8000", "origin": "http://dash:8000"}
FIELDS = {"token": form_token(b"secret", ANA, "nonce")}


def test_the_form_of_an_admin_from_this_host_is_accepted() -> None:
    refuse_foreign(b"secret", ANA, "nonce", FIELDS, HOST)


@pytest.mark.parametrize(
    ("viewer", "nonce", "fields", "headers", "problem"),
    [
        (
            Viewer(name="bo"),
            "nonce",
            {"token": form_token(b"secret", Viewer(name="bo"), "nonce")},
            HOST,
            "may not",
        ),
        (ANA, "nonce", FIELDS, {"host": "dash:8000"}, "not sent from this dashboard"),
        (ANA, "nonce", FIELDS, {**HOST, "origin": "http://evil.test"}, "not sent from this dashboard"),
        (ANA, "nonce", FIELDS, {**HOST, "origin": "null"}, "not sent from this dashboard"),
        (ANA, "nonce", {}, HOST, "out of date"),
        (ANA, "another", FIELDS, HOST, "out of date"),
        (Viewer(name="bo", admin=True), "nonce", FIELDS, HOST, "out of date"),
        (ANA, "", {"token": form_token(b"secret", ANA, "")}, HOST, "out of date"),
    ],
)
def test_any_other_form_is_refused(
    viewer: Viewer, nonce: str, fields: dict[str, str], headers: dict[str, str], problem: str
) -> None:
    with pytest.raises(ForbiddenError, match=problem):
        refuse_foreign(b"secret", viewer, nonce, fields, headers)


def test_a_form_is_read_and_a_huge_or_broken_one_refused() -> None:
    assert read_form(b"entry=a%26b&reason=") == {"entry": "a&b", "reason": ""}
    with pytest.raises(UsageError, match="at most 16384"):
        read_form(b"x" * 20_000)
    with pytest.raises(UsageError, match="cannot be read"):
        read_form(b"\xff")
