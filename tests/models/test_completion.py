"""Chat completions: what is read, and what stays as the endpoint wrote it."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.models.completion import completion_fields, read_completion

likely: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.builds(dict, token=st.text(max_size=3), logprob=st.floats(-9, 0, allow_nan=False)), max_size=3
)


@st.composite
def tokens(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Tokens of a text, cut between any two bytes, as a byte-level tokenizer may do."""
    raw = draw(st.text(max_size=6)).encode()
    cuts = sorted(draw(st.lists(st.integers(0, len(raw)), max_size=4)))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    listed = []
    for piece in pieces:
        own: dict[str, Any] = {"token": piece.decode(errors="replace"), "logprob": draw(st.floats(-9, 0))}
        own["bytes"] = draw(st.sampled_from([None, list(piece)]))
        own["top_logprobs"] = draw(st.one_of(st.none(), likely))
        listed.append(own)
    return listed


@given(content=st.one_of(st.none(), tokens()))
def test_log_probs_that_are_not_decoded_yet_give_the_same_tokens(content: Any) -> None:
    def decode(logprobs: Any) -> Any:
        choice = {"message": {"content": "x"}, "logprobs": logprobs}
        return read_completion({"choices": [choice]}, 0.0, "m").tokens

    logprobs = {"content": content}
    assert decode(msgspec.Raw(json.dumps(logprobs).encode())) == decode(logprobs)


@pytest.mark.parametrize(
    "odd", [{"content": [{"token": "a", "logprob": "-1"}]}, {"content": 7}, [], "?", None]
)
def test_unusual_log_probs_are_read_alike_in_both_forms(odd: Any) -> None:
    choices = [[{"message": {"content": "a"}, "logprobs": form}] for form in (odd, as_raw(odd))]
    decoded, undecoded = (read_completion({"choices": choice}, 0.0, "m") for choice in choices)
    assert decoded == undecoded


def as_raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


def test_unknown_fields_stay_as_the_endpoint_wrote_them() -> None:
    body = (
        b'{"id":"c", "big": 123456789012345678901234567890, "odd": 1.50,'
        b'"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop","x":[1e2]}]}'
    )
    written = msgspec.json.encode(completion_fields(body))
    assert b'"big":123456789012345678901234567890' in written
    assert b'"odd":1.50' in written
    assert b'"x":[1e2]' in written


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"choices": 1}', b'{"choices": [1]}', b"<html>"])
def test_other_replies_are_not_completions(body: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, LookupError)):
        completion_fields(body)
