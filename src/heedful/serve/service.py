"""The parts of a running server."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from heedful.errors import HeedfulError
from heedful.memory.storage import FeedbackBox, Storage
from heedful.serve.admission import Admission, Headers
from heedful.serve.batched_journal import BatchedJournal
from heedful.serve.callers import Caller, Callers
from heedful.serve.refusal import RefusalError
from heedful.serve.serve_metrics import ServeMetrics
from heedful.serve.served_policies import PolicyShelf, ServedPolicy
from heedful.serve.upstream import Upstream
from heedful.types import CALLER

Streaming = Literal["hold", "speculate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Everything that requests share."""

    upstream: Upstream
    shelf: PolicyShelf
    store: Storage
    journal: BatchedJournal
    feedback: FeedbackBox
    callers: Callers
    admission: Admission
    metrics: ServeMetrics
    streaming: Streaming = "hold"
    query_turns: int = 1
    """Number of user turns that banks are searched with."""
    keep_alive: float = 2.0
    """Seconds between two comments in a stream that waits for its decision."""
    without_memory: Mapping[str, str] = field(default_factory=dict)
    """By bank: why it could not be loaded when the policies were; requests are answered without it."""
    _unfinished: "dict[str, asyncio.Task[Any]]" = field(default_factory=dict)
    """By id: decisions of shadows whose clients already have their answers."""

    def caller(self, headers: Headers) -> Caller:
        """The caller of a request; a dashboard asks this for a person's rights too."""
        return self.callers.caller_of(headers.get(b"authorization", b"").decode("latin-1"))

    async def reload(self) -> Sequence[ServedPolicy]:
        """Read keys and policies again; if that fails, the old ones of both stay in use."""
        callers = self.callers
        keys = callers.keys if callers.read is None else await asyncio.to_thread(callers.read)
        policies = await self.shelf.reload()
        callers.keys = keys
        return policies

    async def unready(self) -> dict[str, str]:
        """The parts that do not work, each with its problem."""
        problems = {}
        try:
            async with self.upstream.opened("GET", "/models") as response:
                if response.status >= 500:
                    problems["upstream"] = f"it returns {response.status}"
        except HeedfulError as error:
            problems["upstream"] = str(error)
        try:
            await self.store.ready()
        except HeedfulError as error:
            problems["store"] = str(error)
        return problems

    def finish_later(self, decision: str, work: "asyncio.Task[Any]") -> None:
        """Let a decision finish without its request; nobody waits for its failure."""
        self._unfinished[decision] = work
        work.add_done_callback(lambda done: done.cancelled() or done.exception())
        work.add_done_callback(lambda _: self._unfinished.pop(decision, None))

    async def finished(self, decision: str, seconds: float) -> None:
        """Wait for a decision that its client knows already; one that takes longer is not there yet."""
        work = self._unfinished.get(decision)
        if work is not None and not (await asyncio.wait([work], timeout=seconds))[0]:
            raise RefusalError(503, "this decision is not complete yet; try again")

    async def aclose(self) -> None:
        """Finish and write what waits, and close all connections."""
        await asyncio.gather(*self._unfinished.values(), return_exceptions=True)
        await self.journal.aclose()
        await self.upstream.aclose()
        await self.store.aclose()


def scope_of(header: str, caller: Caller, user: str = "") -> dict[str, str]:
    """The scope of a request, from `KEY=VALUE, KEY=VALUE`, with the caller's name.

    `user`, the request's own field, counts unless the header names one or the key may not use it: clients
    send it for other reasons too.
    """
    scope = {CALLER: caller.name} if caller.name else {}
    for pair in filter(None, map(str.strip, header.split(","))):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not (key and equals and value) or key == CALLER or key in scope:
            raise RefusalError(400, f"the scope {pair!r} is not usable; write x-heedful-scope: user=ann")
        if not caller.rights.allows_scope(key, value):
            raise RefusalError(403, f"this key may not use the scope {key}={value}")
        scope[key] = value
    if user and "user" not in scope and caller.rights.allows_scope("user", user):
        scope["user"] = user
    return scope
