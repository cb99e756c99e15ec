"""A chat completion as a decode."""

import codecs
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from heedful.types import Decode, Token, ToolCall, Usage


class TopLogprob(msgspec.Struct, frozen=True):
    """A likely token at some position."""

    token: str
    logprob: float


class TokenLogprob(msgspec.Struct, frozen=True):
    """A generated token as the API documents it."""

    token: str
    logprob: float
    bytes: list[int] | None = None
    top_logprobs: list[TopLogprob] | None = None


class Logprobs(msgspec.Struct, frozen=True):
    """The log-probs of a choice; fields that are not listed here are skipped without being read."""

    content: list[TokenLogprob] | None = None


_LOGPROBS = msgspec.json.Decoder(Logprobs | None)
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_CHOICES = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_DECODED = ("message", "finish_reason")


def completion_fields(body: bytes) -> dict[str, Any]:
    """The JSON of a completion, in which everything that nobody looks into stays as the endpoint wrote it.

    Raises a decode or lookup error if it is not a completion.
    """
    fields: dict[str, Any] = dict(_FIELDS.decode(body))
    first, *others = _CHOICES.decode(fields["choices"]) or [{}]
    read = {name: msgspec.json.decode(first[name]) for name in _DECODED if name in first}
    fields["choices"] = [{**first, **read}, *others]
    if "usage" in fields:
        fields["usage"] = msgspec.json.decode(fields["usage"])
    return fields


def read_completion(body: Mapping[str, Any], seconds: float, model: str) -> Decode:
    """The first choice of a chat completion; raises a lookup or type error if it is not one.

    The log-probs of the choice may be JSON that is not decoded yet.
    """
    choice = body["choices"][0]
    message = choice["message"]
    text = _writable(message.get("content") or "")
    usage = body.get("usage") or {}
    details = usage.get("prompt_tokens_details") or {}
    return Decode(
        text=text,
        tool_calls=_tool_calls(message.get("tool_calls")),
        answer=text.strip(),
        tokens=_tokens(choice.get("logprobs")),
        usage=Usage(
            prompt_tokens=usage.get("prompt_tokens") or 0,
            completion_tokens=usage.get("completion_tokens") or 0,
            cached_tokens=details.get("cached_tokens") or 0,
        ),
        seconds=seconds,
        finish=choice.get("finish_reason") or "stop",
        model=model,
    )


def _tool_calls(calls: Any) -> tuple[ToolCall, ...]:
    if not calls:
        return ()
    return tuple(
        ToolCall(
            id=str(call.get("id") or ""),
            name=str(call["function"]["name"]),
            arguments=_writable(call["function"].get("arguments") or "{}"),
        )
        for call in calls
    )


def _writable(text: str) -> str:
    """The text with lone surrogates replaced: JSON allows them, UTF-8 does not."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _tokens(logprobs: Any) -> tuple[Token, ...]:
    """The tokens of a completion; none if they are unreadable, because the answer must not be lost."""
    try:
        if isinstance(logprobs, msgspec.Raw):
            try:
                return _documented_tokens(_LOGPROBS.decode(logprobs))
            except (msgspec.ValidationError, UnicodeError, ValueError):
                logprobs = msgspec.json.decode(logprobs)
        return tuple(_read_tokens((logprobs or {}).get("content") or ()))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return ()


def _documented_tokens(logprobs: Logprobs | None) -> tuple[Token, ...]:
    """Tokens of the documented form, each with whole characters; raises `ValueError` for others."""
    tokens = []
    for item in (logprobs and logprobs.content) or ():
        if item.bytes is not None and bytes(item.bytes) != item.token.encode():
            raise ValueError("a character is split over several tokens")
        top = [(likely.token, likely.logprob) for likely in item.top_logprobs or ()]
        if len(top) != 2 or top[0][1] < top[1][1]:
            top.sort(key=_by_logprob)
        tokens.append(Token(item.token, item.logprob, tuple(top)))
    return tuple(tokens)


def _read_tokens(content: Any) -> Iterator[Token]:
    """Tokens whose joined texts give the message, even if a character is split over several tokens."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    last = len(content)
    for place, item in enumerate(content, start=1):
        given = item.get("bytes")
        raw = item["token"].encode() if given is None else bytes(list(given))
        top = [(t["token"], float(t["logprob"])) for t in item.get("top_logprobs") or ()]
        top.sort(key=_by_logprob)
        yield Token(decoder.decode(raw, place == last), float(item["logprob"]), tuple(top))


def _by_logprob(pair: tuple[str, float]) -> float:
    return -pair[1]
