"""A streamed chat completion: relayed as it comes, and put together for the record."""

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from heedful.errors import ModelError
from heedful.models.chunks import whole_completion
from heedful.serve.connection import Connection
from heedful.serve.upstream import CHAT, Upstream, UpstreamError, UpstreamReply, relayed_headers

DONE = b"[DONE]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownParts:
    """The parts of a stream that the client asked for; heedful asks for more."""

    usage: bool
    logprobs: bool

    def of(self, chunk: Mapping[str, Any], data: bytes) -> bytes | None:
        """The chunk as the client gets it; None if it gets nothing of it."""
        choices = chunk.get("choices") or ()
        if not choices and chunk.get("usage") and not self.usage:
            return None
        if self.logprobs or not any(choice.get("logprobs") for choice in choices):
            return data
        return msgspec.json.encode({**chunk, "choices": [{**c, "logprobs": None} for c in choices]})


@dataclass(frozen=True, slots=True)
class StreamedCompletion:
    """The chunks of a stream as one chat completion."""

    json: Mapping[str, Any]
    headers: Mapping[str, str]
    seconds: float


async def read_stream(
    upstream: Upstream, fields: Mapping[str, Any], shown: ShownParts, relay: Callable[[bytes], None]
) -> StreamedCompletion:
    """Stream a chat request; each chunk goes to `relay` at once, with the parts that the client asked for."""
    start = time.perf_counter()
    request = {**fields, "stream": True, "stream_options": {"include_usage": True}}
    chunks: list[dict[str, Any]] = []
    async with upstream.opened("POST", CHAT, msgspec.json.encode(request)) as response:
        headers = relayed_headers(response.headers)
        if response.status != 200 or not headers.get("content-type", "").startswith("text/event-stream"):
            body = await response.whole()
            raise UpstreamError(
                "the upstream did not return a stream",
                UpstreamReply(status=response.status, headers=headers, body=body),
            )
        async for data in events(response):
            if data == DONE:
                break
            chunks.append(_chunk(data))
            if (sent := shown.of(chunks[-1], data)) is not None:
                relay(sent)
        else:
            _refuse_broken_off(chunks)
    return StreamedCompletion(_completion(chunks), headers, time.perf_counter() - start)


def _refuse_broken_off(chunks: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a stream without its end, unless a chunk says that the answer is complete."""
    choices = [choice for chunk in chunks for choice in chunk.get("choices") or ()]
    if not any(choice.get("finish_reason") for choice in choices):
        raise ModelError("the upstream's stream broke off")


async def events(response: Connection) -> AsyncIterator[bytes]:
    """The data of each server-sent event."""
    rest = b""
    while piece := await response.piece():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip()
    if rest.startswith(b"data:"):
        yield rest[5:].strip()


def _chunk(data: bytes) -> dict[str, Any]:
    try:
        chunk = msgspec.json.decode(data, type=dict[str, Any])
        whole_completion([chunk])
    except (msgspec.DecodeError, AttributeError, LookupError, TypeError) as error:
        raise ModelError("the upstream sent a chunk that is not a chat completion") from error
    return chunk


def _completion(chunks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The whole answer in the form of an answer that was not streamed."""
    first = chunks[0] if chunks else {}
    head = {name: value for name, value in first.items() if name not in ("choices", "usage")}
    return {**head, "object": "chat.completion", **whole_completion(chunks)}
