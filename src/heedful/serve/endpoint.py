"""One route of the server: limits, the caller, errors, the log and the counters around a handler."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from heedful.errors import HeedfulError
from heedful.serve.admission import ClientGoneError, Headers
from heedful.serve.callers import NOBODY, Caller
from heedful.serve.refusal import RefusalError, error_body, status_of
from heedful.serve.reply import JSON, Reply
from heedful.serve.request_log import LOG, log_request
from heedful.serve.service import Service
from heedful.serve.upstream import UpstreamError
from heedful.serve.watchdog import Watchdog

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

BYPASS = "x-heedful-bypass"
CLIENT_GONE = 499
"""The status in the log of a request whose client went away, as nginx has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRequest:
    """A request whose caller is known."""

    caller: Caller
    body: bytes
    headers: Headers
    path: dict[str, str]

    def header(self, name: bytes) -> str:
        """A header's text; clients write UTF-8, although the standard knows Latin-1 only."""
        value = self.headers.get(name, b"")
        try:
            return value.decode().strip()
        except UnicodeDecodeError:
            return value.decode("latin-1").strip()


Handler = Callable[[Service, ServedRequest, Reply], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An ASGI application for one route."""

    service: Service
    handler: Handler
    path: str
    counted: bool = True
    """Whether it takes one of the places for requests in progress."""
    open: bool = False
    """Whether it needs no key."""

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        started, reply, name = time.perf_counter(), Reply(send), ""
        try:
            headers: Headers = dict(scope["headers"])
            self.service.admission.check_headers(scope["headers"], headers)
            caller = NOBODY if self.open else self.service.caller(headers)
            name = caller.name
            if self.counted:
                with self.service.admission.place(caller):
                    await self._handle(scope, receive, reply, caller, headers)
            else:
                await self._handle(scope, receive, reply, caller, headers)
        except ClientGoneError:
            reply.status = CLIENT_GONE
        except HeedfulError as error:
            await _report(reply, error)
        except Exception:  # a bug of ours: the caller gets no details, the log has the place
            LOG.exception("internal error")
            await _report(reply, RefusalError(500, "heedful failed; its log has the details"))
        self.service.metrics.count("requests", self.path, str(reply.failure or reply.status))
        log_request(self.path, reply, started, name)

    async def _handle(
        self, scope: "Scope", receive: "Receive", reply: Reply, caller: Caller, headers: Headers
    ) -> None:
        admission = self.service.admission
        body = await admission.body(receive, headers)
        path = scope.get("path_params", {})
        request = ServedRequest(caller=caller, body=body, headers=headers, path=path)
        with Watchdog(receive, admission.limits):
            await self.handler(self.service, request, reply)


async def _report(reply: Reply, error: HeedfulError) -> None:
    """Send an error: the upstream's own reply unchanged, or ours; a reply that has begun breaks off."""
    if reply.started:  # the server closes a connection whose reply has no end
        reply.failure = status_of(error)
        return
    if isinstance(error, UpstreamError):
        answer = error.reply
        reason = {BYPASS: "not a chat completion"} if answer.status == 200 else {}
        await reply.whole(answer.status, answer.body, {**answer.headers, **reason})
        return
    status = status_of(error)
    retry = {"retry-after": "1"} if status in (429, 503) else {}
    await reply.whole(status, error_body(status, str(error)), {"content-type": JSON, **retry})


async def send_json(reply: Reply, value: object, status: int = 200) -> None:
    await reply.whole(status, msgspec.json.encode(value), {"content-type": JSON})
