"""The model of one chat request: every pass carries the caller's fields and keeps its raw reply."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from heedful.errors import ModelError
from heedful.models.chat_request import prompt_fields
from heedful.models.completion import completion_fields
from heedful.serve.chat_call import ChatCall
from heedful.serve.chat_task import ChatTask
from heedful.serve.completion_stream import ShownParts, read_stream
from heedful.serve.sampling import sampling_of
from heedful.serve.upstream import Upstream, UpstreamError, UpstreamReply
from heedful.types import Decode, Prompt, Traits

STREAM_FIELDS = frozenset({"stream", "stream_options"})


@dataclass(frozen=True, slots=True)
class Completion:
    """A decode, and the chat completion it was read from."""

    decode: Decode
    json: Mapping[str, Any]
    headers: Mapping[str, str]


@dataclass(slots=True, kw_only=True)
class RequestModel:
    """Decodes the passes of one request at the upstream."""

    upstream: Upstream
    call: ChatCall
    chat: ChatTask
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a pass that the request does not set."""
    relay: Callable[[bytes], None] | None = None
    """Receives the chunks of the first pass as they come; None: passes are not streamed."""
    first_ended: Callable[[], None] | None = None
    """Called once the first pass is complete."""
    measured: bool = True
    """Whether a streamed pass needs log-probs, because something depends on its confidence."""
    traits: Traits
    preparing: asyncio.Task[None] | None = None
    """Starts second passes ahead of their turn."""
    completions: list[Completion] = field(default_factory=list)
    """Every reply, in order of arrival."""
    _ahead: list[tuple[Prompt, asyncio.Task[Decode]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.traits = replace(self.traits, sampling=sampling_of({**self.defaults, **self.call.fields}))

    async def decode(self, prompt: Prompt) -> Decode:
        if prompt.messages != self.chat.first.messages:
            if self.preparing is not None:
                await self.preparing
            for known, task in self._ahead:
                if known == prompt:
                    self._ahead.remove((known, task))
                    return await task
        elif self.relay is not None:
            return await self._streamed(prompt, self.relay)
        decode = await self._asked(prompt)
        if self.first_ended is not None:
            self.first_ended()
        return decode

    def begin(self, prompt: Prompt) -> None:
        """Start to decode a prompt that will probably be asked."""
        self._ahead.append((prompt, asyncio.create_task(self._asked(prompt))))

    async def aclose(self) -> None:
        """Cancel the decodes that nobody asked for."""
        tasks: list[asyncio.Task[Any]] = [] if self.preparing is None else [self.preparing]
        tasks += [task for _, task in self._ahead]
        self._ahead.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)

    def completion_of(self, decode: Decode) -> Completion | None:
        """The reply that a decode was read from; reading its answer made a copy of the decode."""
        for known in self.completions:
            if (known.decode.text, known.decode.seconds) == (decode.text, decode.seconds):
                return known
        return None

    def headers_of(self, decode: Decode) -> Mapping[str, str]:
        """The upstream's headers of the reply that a decode was read from."""
        known = self.completion_of(decode)
        return {} if known is None else known.headers

    async def _asked(self, prompt: Prompt) -> Decode:
        request = self._request(prompt)
        reply, seconds = await self.upstream.post(request)
        if name := self.upstream.learns_refusal(reply, request):
            reply, seconds = await self.upstream.post(self._request(prompt))
            if reply.status != 200:
                self.upstream.forgets_refusal(name)
        return self._read(reply, seconds)

    def _read(self, reply: UpstreamReply, seconds: float) -> Decode:
        if reply.status != 200:
            raise UpstreamError(f"the upstream returned {reply.status}", reply)
        try:
            body = completion_fields(reply.body)
            decode = self.upstream.chat.read_completion(body, seconds)
        except (msgspec.DecodeError, LookupError, ModelError, RecursionError) as error:
            raise UpstreamError("the upstream did not return a chat completion", reply) from error
        self.completions.append(Completion(decode, body, reply.headers))
        self._hears(decode)
        return decode

    async def _streamed(self, prompt: Prompt, relay: Callable[[bytes], None]) -> Decode:
        """The first pass as a stream; an upstream that does not stream is read as a whole."""
        self.relay = None
        fields = self._request(prompt)
        if not self.measured:
            for name in ("logprobs", "top_logprobs"):
                if name not in self.call.fields:
                    fields.pop(name, None)
        shown = ShownParts(usage=self.call.include_usage, logprobs=bool(self.call.fields.get("logprobs")))
        try:
            streamed = await read_stream(self.upstream, fields, shown, relay)
        except UpstreamError as error:
            if self.upstream.learns_refusal(error.reply, fields):
                return await self._streamed(prompt, relay)
            return self._read(error.reply, 0.0)
        decode = self.upstream.chat.read_completion(streamed.json, streamed.seconds)
        self.completions.append(Completion(decode, streamed.json, streamed.headers))
        self._hears(decode)
        if self.first_ended is not None:
            self.first_ended()
        return decode

    def _hears(self, decode: Decode) -> None:
        if decode.text and self.traits.logprobs and self.measured:
            self.upstream.hears(self.call.model, bool(decode.tokens))

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        signals = self.upstream.signal_fields()
        messages = self.chat.json_messages(prompt)
        if not self.chat.is_pass(prompt):
            return {**self._common(), **prompt_fields(prompt), **signals, "messages": messages}
        own = {name: value for name, value in self.call.fields.items() if name not in STREAM_FIELDS}
        sampled: dict[str, Any] = {"temperature": prompt.temperature} if prompt.temperature else {}
        if prompt.seed is not None:
            sampled["seed"] = prompt.seed
        asked = {**own, **signals} if not own.get("top_logprobs") else {**signals, **own}
        return {**self._common(), **self.defaults, **asked, **sampled, "messages": messages}

    def _common(self) -> dict[str, Any]:
        """The model's name, and the fields that the operator adds to every request."""
        model = self.call.model or self.upstream.chat.model
        return {**self.upstream.chat.extra, **({"model": model} if model else {})}
