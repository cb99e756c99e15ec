"""A model that asks through somebody's own client: one request of theirs, with other messages."""

import asyncio
import inspect
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from heedful.adapters.chat_task import ChatTask, Fields
from heedful.models.chat import UNNAMED
from heedful.models.chat_request import message_fields
from heedful.models.chunks import whole_completion
from heedful.models.completion import read_completion
from heedful.types import Decode, Message, Prompt, Traits, digest_of

TOP_LOGPROBS = 2
OF_TOOLS = ("tools", "tool_choice", "parallel_tool_calls")
OF_LENGTH = ("max_tokens", "max_completion_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientReply:
    """A decode, and the client's own object it was read from: a completion, or the chunks of a stream."""

    decode: Decode
    raw: Any


@dataclass(slots=True, kw_only=True)
class ClientModel:
    """Decodes prompts by the caller's request; errors of the client pass through unchanged."""

    create: Callable[..., Any]
    """The client's own method, sync or async."""
    base_url: str
    request: Fields
    asked: ChatTask
    logprobs: bool = True
    replies: list[ClientReply] = field(default_factory=list)
    """Every reply, in order."""

    @property
    def traits(self) -> Traits:
        name = str(self.request.get("model") or "")
        return Traits(
            name=name or UNNAMED,
            endpoint=self.base_url,
            logprobs=self.logprobs,
            top_logprobs=TOP_LOGPROBS if self.logprobs else 0,
            fingerprint=digest_of([self.base_url, name]),
        )

    async def decode(self, prompt: Prompt) -> Decode:
        start = time.perf_counter()
        fields = self._fields(prompt)
        raw = await (self._ask(fields) if is_async(self.create) else asyncio.to_thread(self._ask_now, fields))
        body = whole_completion(map(_dumped, raw)) if isinstance(raw, list) else _dumped(raw)
        decode = read_completion(body, time.perf_counter() - start, self.traits.name)
        self.replies.append(ClientReply(decode=decode, raw=raw))
        return decode

    async def aclose(self) -> None:
        """Leave the client open: its owner closes it."""

    def reply_with(self, decode: Decode) -> Any:
        """The client's own object that says the same as a decode; the first one if none does."""
        for reply in self.replies:
            if (reply.decode.text, reply.decode.tool_calls) == (decode.text, decode.tool_calls):
                return reply.raw
        return self.replies[0].raw

    async def _ask(self, fields: Fields) -> Any:
        reply = await self.create(**fields)
        return [chunk async for chunk in reply] if fields.get("stream") is True else reply

    def _ask_now(self, fields: Fields) -> Any:
        reply = self.create(**fields)
        return list(reply) if fields.get("stream") is True else reply

    def _fields(self, prompt: Prompt) -> dict[str, Any]:
        """The caller's request with the prompt's messages, and its sampling if it asks for a sample."""
        fields = {**self.request, "messages": [self._sent(message) for message in prompt.messages]}
        own = self.asked.task
        if self.logprobs and fields.get("logprobs") is not True:
            fields |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        if prompt.temperature:
            fields |= {"temperature": prompt.temperature}
            fields |= {} if prompt.seed is None else {"seed": prompt.seed}
        dropped = [] if prompt.tools or not own.tools else [*OF_TOOLS]
        dropped += [] if prompt.schema is not None or own.schema is None else ["response_format"]
        dropped += OF_LENGTH if prompt.max_tokens != own.max_tokens else ()
        kept = {name: value for name, value in fields.items() if name not in dropped}
        return kept | ({"max_tokens": prompt.max_tokens} if prompt.max_tokens != own.max_tokens else {})

    def _sent(self, message: Message) -> Fields:
        written = self.asked.as_sent(message)
        return message_fields(message) if written is None else written


def is_async(create: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(inspect.unwrap(create))


def without_logprobs(raw: Any) -> None:
    """Remove log-probs that the caller did not ask for."""
    objects: Sequence[Any] = raw if isinstance(raw, list) else [raw]
    for choice in (choice for one in objects for choice in one.choices):
        choice.logprobs = None


def _dumped(reply: Any) -> dict[str, Any]:
    fields: dict[str, Any] = reply.model_dump()
    return fields
