"""Any OpenAI-compatible chat endpoint."""

import asyncio
import codecs
import json
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from heedful.errors import MissingError, ModelError, UsageError
from heedful.types import Decode, Prompt, Token, Traits, Usage, digest_of

if TYPE_CHECKING:
    import aiohttp

LONGEST_WAIT = 60.0
"""A Retry-After beyond this many seconds is not waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatModel:
    """Speaks to one model behind one base URL."""

    base_url: str
    model: str = ""
    logprobs: bool = True
    """Whether to ask for log-probs; `heedful probe` tells whether the endpoint gives them."""
    top_logprobs: int = 2
    key: str | None = field(default=None, repr=False)
    """The API key; None: from the environment variable `key_from`, if it is set."""
    key_from: str = "OPENAI_API_KEY"
    timeout: float = 120.0
    """Seconds for one try."""
    retries: int = 3
    """Further tries after 429, 5xx or a broken connection."""
    concurrency: int = 4
    fingerprint: str = ""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _wires: "WeakKeyDictionary[asyncio.AbstractEventLoop, _Wire]" = field(
        default_factory=WeakKeyDictionary, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise UsageError(f"{self.base_url!r} is not a URL; give one like http://127.0.0.1:8000/v1")
        path = parts.path.rstrip("/") or "/v1"
        object.__setattr__(self, "base_url", f"{parts.scheme}://{parts.netloc}{path}")

    @property
    def traits(self) -> Traits:
        return Traits(
            name=self.model or "default",
            endpoint=self.base_url,
            logprobs=self.logprobs,
            top_logprobs=self.top_logprobs if self.logprobs else 0,
            fingerprint=self.fingerprint or digest_of([self.base_url, self.model]),
        )

    async def decode(self, prompt: Prompt) -> Decode:
        start = time.perf_counter()
        body = await self.post("/chat/completions", self._request(prompt))
        return self._decode(body, time.perf_counter() - start)

    async def post(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request, again after a passing fault, and return the JSON object it answers with."""
        wire = await self._wire()
        async with wire.slots:
            for attempt in range(self.retries + 1):
                try:
                    return await self._try(wire.session, path, request)
                except _PassingError as fault:
                    wait = fault.wait if fault.wait is not None else 0.25 * 2**attempt * (1 + random.random())
                    if attempt == self.retries or wait > LONGEST_WAIT:
                        raise ModelError(f"{fault} (tried {attempt + 1} times)") from fault
                await self.sleep(wait)
        raise AssertionError("the loop above returns or raises")

    async def _try(
        self, session: "aiohttp.ClientSession", path: str, request: dict[str, Any]
    ) -> dict[str, Any]:
        import aiohttp

        url = self.base_url + path
        try:
            async with session.post(url, json=request, headers=self._headers()) as response:
                status, body = response.status, await response.read()
                if status != 200:
                    raise _failure(url, status, body, response.headers.get("Retry-After"), self.key_from)
        except TimeoutError as error:
            raise ModelError(f"{url} did not answer within {self.timeout:g} s") from error
        except aiohttp.ClientError as error:
            raise _PassingError(f"{url} broke the connection: {error}") from error
        try:
            answer = json.loads(body)
        except ValueError as error:
            raise ModelError(f"{url} answered something that is not JSON: {body[:80]!r}") from error
        if not isinstance(answer, dict):
            raise ModelError(f"{url} answered {body[:80]!r} where an object was expected")
        return answer

    def _headers(self) -> dict[str, str]:
        key = self.key if self.key is not None else os.environ.get(self.key_from)
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        request: dict[str, Any] = {
            "messages": [{"role": m.role, "content": m.content} for m in prompt.messages],
            "max_tokens": prompt.max_tokens,
            "temperature": prompt.temperature,
        }
        if self.model:
            request["model"] = self.model
        if self.logprobs:
            request |= {"logprobs": True, "top_logprobs": self.top_logprobs}
        if prompt.seed is not None:
            request["seed"] = prompt.seed
        if prompt.schema is not None:
            schema = {"name": "answer", "schema": dict(prompt.schema)}
            request["response_format"] = {"type": "json_schema", "json_schema": schema}
        return request

    def _decode(self, body: dict[str, Any], seconds: float) -> Decode:
        try:
            choice = body["choices"][0]
            text = choice["message"]["content"] or ""
            usage = body.get("usage") or {}
            details = usage.get("prompt_tokens_details") or {}
            return Decode(
                text=text,
                answer=text.strip(),
                tokens=_tokens((choice.get("logprobs") or {}).get("content") or ()),
                usage=Usage(
                    prompt_tokens=usage.get("prompt_tokens", 0),
                    completion_tokens=usage.get("completion_tokens", 0),
                    cached_tokens=details.get("cached_tokens") or 0,
                ),
                seconds=seconds,
                finish=choice.get("finish_reason") or "stop",
                model=f"{self.base_url} ({self.model})" if self.model else self.base_url,
            )
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise ModelError(f"{self.base_url} answered no chat completion: {str(body)[:120]}") from error

    async def _wire(self) -> "_Wire":
        loop = asyncio.get_running_loop()
        if loop not in self._wires:
            holder = _open_session(self.timeout)
            session = await anext(holder)
            self._wires[loop] = _Wire(session, asyncio.Semaphore(self.concurrency), holder)
        return self._wires[loop]


@dataclass(frozen=True, slots=True)
class _Wire:
    """The connections of one event loop."""

    session: "aiohttp.ClientSession"
    slots: asyncio.Semaphore
    holder: AsyncIterator["aiohttp.ClientSession"]


async def _open_session(seconds: float) -> AsyncIterator["aiohttp.ClientSession"]:
    """A generator, because an event loop that ends closes its open generators and so this session."""
    import aiohttp

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=seconds)) as session:
        yield session


class _PassingError(Exception):
    """A failure worth another try, after `wait` seconds if the server named them."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


def _failure(url: str, status: int, body: bytes, retry_after: str | None, key_from: str) -> Exception:
    said = body[:200].decode(errors="replace").strip()
    if status == 429 or status >= 500:
        return _PassingError(f"{url} answered {status}: {said}", _seconds(retry_after))
    if status in (401, 403):
        return MissingError(f"{url} refused the key ({status}); set {key_from} to a valid one")
    return ModelError(f"{url} answered {status}: {said}")


def _seconds(retry_after: str | None) -> float | None:
    """Retry-After as seconds from now: a number or an HTTP date."""
    if retry_after is None:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except ValueError:
        return None


def _tokens(content: Any) -> tuple[Token, ...]:
    """Tokens whose texts join to the message, also where a character is split over several tokens."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    tokens = []
    for item in content:
        raw = item.get("bytes")
        text = item["token"] if raw is None else decoder.decode(bytes(raw))
        top = sorted(
            ((t["token"], float(t["logprob"])) for t in item.get("top_logprobs") or ()), key=_by_logprob
        )
        tokens.append(Token(text, float(item["logprob"]), tuple(top)))
    return tuple(tokens)


def _by_logprob(pair: tuple[str, float]) -> float:
    return -pair[1]
