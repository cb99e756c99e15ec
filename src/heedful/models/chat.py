"""Any OpenAI-compatible chat endpoint."""

import asyncio
import json
import os
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from math import isnan
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from heedful.errors import MissingError, ModelError, RequestError, UsageError
from heedful.limits import refuse_count, refuse_seconds, refuse_text
from heedful.models.chat_request import (
    OPTIONAL_FIELDS,
    accepted_fields,
    prompt_fields,
    refuse_own_fields,
    rejected_field,
)
from heedful.models.completion import read_completion
from heedful.models.endpoints import known_rejects
from heedful.models.headers import filled_headers
from heedful.models.schemes import ModelOptions
from heedful.types import Decode, Prompt, Traits, digest_of

if TYPE_CHECKING:
    import aiohttp

UNNAMED = "default"
"""The name in traits and records if no model was named and the endpoint chooses one."""
LONGEST_WAIT = 60.0
"""Maximum wait in seconds; a longer Retry-After is an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatModel:
    """Calls one model at one base URL."""

    base_url: str
    model: str = ""
    logprobs: bool = True
    """Whether to request log-probs; `heedful probe` shows whether the endpoint supports them."""
    top_logprobs: int = 2
    key: str | None = field(default=None, repr=False)
    """The API key; None: the value of the environment variable `key_from`, if set."""
    key_from: str = "OPENAI_API_KEY"
    timeout: float = 120.0
    """Seconds per attempt."""
    retries: int = 3
    """Further attempts after 429, 5xx or a broken connection."""
    concurrency: int = 4
    fingerprint: str = ""
    rejects: frozenset[str] = frozenset()
    """Optional fields that the endpoint is known to reject; `heedful probe` finds them."""
    adapts: frozenset[str] = OPTIONAL_FIELDS
    """Optional fields to leave out once the endpoint rejects them by name."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers to add to every request."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Body fields to add to every request, such as `reasoning_effort`."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _refused: set[str] = field(init=False, default_factory=set, repr=False, compare=False)
    _wires: "dict[asyncio.AbstractEventLoop, _Wire]" = field(
        init=False, default_factory=dict, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "base_url", _checked(self.base_url))
        refuse_text("ChatModel(model)", self.model)
        refuse_seconds("ChatModel(timeout)", self.timeout)
        refuse_count("ChatModel(retries)", self.retries, least=0)
        refuse_count("ChatModel(concurrency)", self.concurrency, least=1)
        refuse_count("ChatModel(top_logprobs)", self.top_logprobs, least=0)
        refuse_own_fields(self.extra)
        self._refused.update(self.rejects)

    @property
    def traits(self) -> Traits:
        return Traits(
            name=self.model or UNNAMED,
            endpoint=self.base_url,
            logprobs=self.logprobs and "logprobs" not in self._refused,
            top_logprobs=0
            if self._refused & {"logprobs", "top_logprobs"} or not self.logprobs
            else self.top_logprobs,
            fingerprint=self.fingerprint_of(self.model),
        )

    def fingerprint_of(self, model: str) -> str:
        """The fingerprint of a model at this endpoint."""
        return self.fingerprint or digest_of([self.base_url, model, *self._extra_key()])

    async def decode(self, prompt: Prompt) -> Decode:
        start = time.perf_counter()
        body = await self._complete(prompt)
        return self.read_completion(body, time.perf_counter() - start)

    async def _complete(self, prompt: Prompt) -> dict[str, Any]:
        """Ask; if the endpoint rejects an optional field by name, ask without it and remember that."""
        blamed: set[str] = set()
        while True:
            request = self._request(prompt)
            try:
                return await self.post("/chat/completions", request)
            except RequestError as error:
                refused = rejected_field(str(error), request)
                if refused is None or refused not in self.adapts:
                    self._refused.difference_update(blamed)  # leaving them out did not help
                    raise
                blamed.add(refused)
                self._refused.add(refused)

    @property
    def refused(self) -> frozenset[str]:
        """The optional fields that the endpoint has rejected so far."""
        return frozenset(self._refused)

    async def post(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request, retry after transient failures, and return the JSON object of the reply."""
        wire = await self._wire()
        async with wire.slots:
            for attempt in range(self.retries + 1):
                try:
                    return await self._try(wire.session, path, request)
                except _TransientError as failure:
                    wait = _backoff(attempt) if failure.wait is None else failure.wait
                    if wait > LONGEST_WAIT:
                        raise ModelError(f"{failure}; try again in {wait:.0f} s", wait) from failure
                    if attempt == self.retries:
                        raise ModelError(f"{failure} (tried {attempt + 1} times)", failure.wait) from failure
                await self.sleep(wait)
        raise AssertionError("the loop above returns or raises")

    async def _try(
        self, session: "aiohttp.ClientSession", path: str, request: dict[str, Any]
    ) -> dict[str, Any]:
        import aiohttp

        url = self.base_url + path
        try:
            async with session.post(url, json=request, headers=self.request_headers()) as response:
                status, body = response.status, await response.read()
        except TimeoutError as error:
            raise ModelError(f"{url} did not answer within {self.timeout:g} s") from error
        except aiohttp.ClientError as error:
            raise _TransientError(f"connection to {url} failed: {self._quoted(str(error))}") from error
        quoted = self._quoted(body.decode(errors="replace"))
        if status != 200:
            raise _failure(url, status, quoted, response.headers.get("Retry-After"), self.key_from)
        try:
            reply = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{url} returned a reply that is not JSON: {quoted!r}") from error
        if not isinstance(reply, dict):
            raise ModelError(f"{url} returned {quoted!r} instead of a JSON object")
        return reply

    def request_headers(self) -> dict[str, str]:
        """The headers of every request, with the key."""
        key = self._key()
        if not key.isprintable():
            raise MissingError(f"the key has an unprintable character; set {self.key_from} to a valid key")
        bearer = {"Authorization": f"Bearer {key}"} if key else {}
        return {**bearer, **filled_headers(self.headers, os.environ)}

    def _extra_key(self) -> list[object]:
        """Extra fields may change the replies, so they are part of the model's identity."""
        return [dict(self.extra)] if self.extra else []

    def _key(self) -> str:
        return (self.key if self.key is not None else os.environ.get(self.key_from, "")).strip()

    def _quoted(self, text: str) -> str:
        """The first 200 characters of a server's text, with the key removed."""
        key = self._key()
        return (text.replace(key, "[key]") if key else text).strip()[:200]

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        wanted = {"logprobs": True, "top_logprobs": self.top_logprobs} if self.logprobs else {}
        named = {"model": self.model} if self.model else {}
        fields = {**prompt_fields(prompt), **named, **wanted}
        return {**accepted_fields(fields, self._refused), **self.extra}

    def read_completion(self, body: Mapping[str, Any], seconds: float) -> Decode:
        """The decode in a chat completion that the endpoint returned after some seconds."""
        try:
            return read_completion(
                body, seconds, f"{self.base_url} ({self.model})" if self.model else self.base_url
            )
        except (AttributeError, LookupError, TypeError) as error:
            quoted = self._quoted(str(body))
            raise ModelError(f"{self.base_url} did not return a chat completion: {quoted}") from error

    async def _wire(self) -> "_Wire":
        loop = asyncio.get_running_loop()
        if loop not in self._wires:
            for ended in [known for known in list(self._wires) if known.is_closed()]:
                self._wires.pop(ended, None)
            holder = _open_session(self.timeout)
            session = await anext(holder)
            self._wires[loop] = _Wire(session, asyncio.Semaphore(self.concurrency), holder)
        return self._wires[loop]

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        wire = self._wires.pop(asyncio.get_running_loop(), None)
        if wire is not None:
            await wire.holder.aclose()


def chat_model(options: ModelOptions) -> ChatModel:
    """The model at an endpoint, without the fields that the endpoint is known to reject."""
    url = _checked(options.url)
    return ChatModel(
        base_url=url,
        model=options.model,
        logprobs=options.logprobs,
        timeout=options.timeout,
        retries=options.retries,
        concurrency=options.slots,
        rejects=known_rejects(url, options.model),
        headers=options.headers,
        extra=options.extra,
    )


@dataclass(frozen=True, slots=True)
class _Wire:
    """The connections of one event loop."""

    session: "aiohttp.ClientSession"
    slots: asyncio.Semaphore
    holder: AsyncGenerator["aiohttp.ClientSession", None]


async def _open_session(seconds: float) -> AsyncGenerator["aiohttp.ClientSession", None]:
    """A generator, because a closing event loop closes its open generators and with them this session."""
    import aiohttp

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=seconds)) as session:
        yield session


class _TransientError(Exception):
    """A failure worth a retry, after `wait` seconds if the server gave a time."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


def _checked(url: str) -> str:
    """The base URL without a trailing slash, and with OpenAI's path if it has none."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except (AttributeError, TypeError, ValueError):
        valid = False
    if not valid:
        raise UsageError(f"{url!r} is not a valid URL; use one such as http://127.0.0.1:8000/v1")
    if "@" in parts.netloc:
        raise UsageError(f"the URL of {parts.hostname} contains a user or password; remove it and set a key")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/') or '/v1'}"


def _backoff(attempt: int) -> float:
    """Seconds before the next attempt: exponential with jitter."""
    return min(LONGEST_WAIT, 0.25 * 2.0**attempt * (1 + random.random()))


def _failure(url: str, status: int, quoted: str, retry_after: str | None, key_from: str) -> Exception:
    if status == 429 or status >= 500:
        return _TransientError(f"{url} returned {status}: {quoted}", _seconds(retry_after))
    if status == 401:
        return MissingError(f"{url} rejected the key (401); set {key_from} to a valid key")
    if status == 403:
        return ModelError(
            f"{url} refused access (403): {quoted or 'no reason given'}; check that the key in {key_from} "
            "may use this model, and that the endpoint allows requests from here"
        )
    failure = RequestError if status in (400, 422) else ModelError
    return failure(f"{url} returned {status}: {quoted}")


def _seconds(retry_after: str | None) -> float | None:
    """Retry-After (a number or an HTTP date) as seconds from now; None if it is neither."""
    if retry_after is None:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            date = parsedate_to_datetime(retry_after)
        except ValueError:
            return None
        seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - time.time()
    return None if isnan(seconds) else max(0.0, seconds)
