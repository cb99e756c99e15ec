"""Requests that heedful itself refuses, as the OpenAI API reports errors."""

import msgspec

from heedful.errors import HeedfulError


class RefusalError(HeedfulError):
    """A request that heedful does not serve, with its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def status_of(error: HeedfulError) -> int:
    """The HTTP status of an error."""
    return error.status if isinstance(error, RefusalError) else error.http_status


def error_body(status: int, message: str) -> bytes:
    """An error in the form of the OpenAI API."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return msgspec.json.encode({"error": {"message": message, "type": kind, "code": None, "param": None}})
