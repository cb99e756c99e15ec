"""The endpoint behind the server: one pool of connections, and its replies as they are."""

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from heedful.errors import ModelError, UsageError
from heedful.models.chat import ChatModel
from heedful.models.chat_request import rejected_field
from heedful.models.embedded import EmbeddedModel
from heedful.ports import Model
from heedful.serve.connection import Connection, HeaderPairs
from heedful.serve.connection_pool import ConnectionPool
from heedful.serve.request_log import LOG
from heedful.types import Traits

CHAT = "/chat/completions"
UNRELAYED = frozenset(
    {
        *("connection", "content-encoding", "content-length", "date", "keep-alive", "server"),
        *("transfer-encoding", "set-cookie", "access-control-allow-origin"),
    }
)
"""Headers of a reply that belong to its connection or its host."""
KNOWN_MODELS = 1000
SILENT_REPLIES = 3
"""After so many replies in a row without log-probs, a model counts for a while as one that has none."""
SILENT_SECONDS = 300
SIGNAL_FIELDS = ("top_logprobs", "logprobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamReply:
    """A whole reply of the upstream."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class UpstreamError(ModelError):
    """A reply that is not a chat completion; the client gets it unchanged."""

    def __init__(self, message: str, reply: UpstreamReply) -> None:
        super().__init__(message)
        self.reply = reply


class UpstreamTimeoutError(ModelError):
    """The upstream took too long."""

    http_status = 504


@dataclass(slots=True, kw_only=True)
class Upstream:
    """Sends requests to one base URL, which only the operator chooses."""

    chat: ChatModel
    """Knows the URL, the key and how a completion is read."""
    embedded: EmbeddedModel | None = None
    """The engine behind the URL, which runs as long as this reference."""
    _pool: ConnectionPool = field(init=False, repr=False)
    _fingerprints: dict[str, str] = field(default_factory=dict)
    _refused: set[str] = field(default_factory=set)
    _silent: dict[str, int] = field(default_factory=dict)
    """By model: replies in a row without log-probs."""
    _silent_until: dict[str, float] = field(default_factory=dict)
    """By model: until when it counts as one without log-probs."""

    def __post_init__(self) -> None:
        self._refused.update(self.chat.rejects)
        self._pool = ConnectionPool(
            url=self.chat.base_url,
            headers={"Content-Type": "application/json", **self.chat.request_headers()},
            limit=self.chat.concurrency,
            seconds=self.chat.timeout,
        )

    def traits(self, model: str) -> Traits:
        """What is known of a model behind this URL; empty: the one that the operator named."""
        model = model or self.chat.model
        silent = self._silent_until.get(model, 0.0) > time.monotonic()
        logprobs = self.chat.logprobs and "logprobs" not in self._refused and not silent
        top = self.chat.top_logprobs if logprobs and "top_logprobs" not in self._refused else 0
        if self.embedded is not None:
            return replace(self.embedded.traits, logprobs=logprobs, top_logprobs=top)
        url = self.chat.base_url
        return Traits(
            name=model or "default",
            endpoint=url,
            logprobs=logprobs,
            top_logprobs=top,
            fingerprint=self._fingerprint(model),
        )

    def _fingerprint(self, model: str) -> str:
        if model not in self._fingerprints:
            if len(self._fingerprints) >= KNOWN_MODELS:  # names come from requests
                self._fingerprints.clear()
            self._fingerprints[model] = self.chat.fingerprint_of(model)
        return self._fingerprints[model]

    def signal_fields(self) -> dict[str, Any]:
        """The fields that ask for log-probs, as far as the upstream accepts them."""
        wanted = {"logprobs": True, "top_logprobs": self.chat.top_logprobs} if self.chat.logprobs else {}
        return (
            {} if "logprobs" in self._refused else {k: v for k, v in wanted.items() if k not in self._refused}
        )

    def learns_refusal(self, reply: UpstreamReply, request: Mapping[str, Any]) -> str | None:
        """The log-prob field that an error reply rejects by name, which later requests leave out."""
        if reply.status not in (400, 422):
            return None
        name = rejected_field(reply.body.decode(errors="replace"), request)
        if name not in SIGNAL_FIELDS or name not in self.signal_fields():
            return None
        self._refused.add(name)
        return name

    def hears(self, model: str, logprobs: bool) -> None:
        """Note whether a model's reply had the log-probs it was asked for; it may ignore the wish."""
        model = model or self.chat.model
        if len(self._silent) >= KNOWN_MODELS:  # names come from requests
            self._silent.clear()
            self._silent_until.clear()
        self._silent[model] = 0 if logprobs else self._silent.get(model, 0) + 1
        if self._silent[model] >= SILENT_REPLIES:
            self._silent[model] = 0
            self._silent_until[model] = time.monotonic() + SILENT_SECONDS
            LOG.warning("no log-probs", {"model": model, "passed_through_seconds": SILENT_SECONDS})

    def forgets_refusal(self, name: str) -> None:
        """Leaving the field out did not help."""
        self._refused.discard(name)

    async def post(self, fields: Mapping[str, Any]) -> tuple[UpstreamReply, float]:
        """Send a chat request; the reply, whatever its status, and the seconds it took."""
        start, body = time.perf_counter(), msgspec.json.encode(fields)
        with _ConnectionErrors(self.chat.timeout):
            reply = await self._pool.whole("POST", CHAT, body)
        whole = UpstreamReply(status=reply.status, headers=relayed_headers(reply.headers), body=reply.body)
        return whole, time.perf_counter() - start

    @asynccontextmanager
    async def opened(self, method: str, path: str, body: bytes = b"") -> AsyncIterator[Connection]:
        """A reply whose body is still to be read; failures of the connection are `ModelError`."""
        with _ConnectionErrors(self.chat.timeout):
            async with self._pool.opened(method, path, body) as connection:
                yield connection

    async def aclose(self) -> None:
        self._pool.close()


class _ConnectionErrors:
    """Turns failures of the connection into `ModelError`; a class, because every request enters it."""

    __slots__ = ("_seconds",)

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if kind is None:
            return
        if issubclass(kind, TimeoutError):
            late = f"the upstream did not answer within {self._seconds:g} s"
            raise UpstreamTimeoutError(late) from error
        if issubclass(kind, OSError):
            raise ModelError(f"the connection to the upstream failed: {kind.__name__}") from error


def relayed_headers(pairs: HeaderPairs) -> dict[str, str]:
    """The headers that a client gets from the upstream's reply."""
    named = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in pairs]
    return {name: value for name, value in named if name not in UNRELAYED}


def upstream_of(model: Model, concurrency: int, timeout: float) -> Upstream:
    """The upstream of a model; only models that are called by HTTP can be served."""
    if isinstance(model, EmbeddedModel):
        return Upstream(chat=replace(model.chat, timeout=timeout), embedded=model)
    if not isinstance(model, ChatModel):
        raise UsageError(f"{model.traits.name} is not an HTTP endpoint; give --upstream http://…")
    return Upstream(chat=replace(model, concurrency=concurrency, timeout=timeout))
