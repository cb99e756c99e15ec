from typing import Any

from heedful.models.chunks import whole_completion
from heedful.models.completion import read_completion


def test_pieces_of_text_log_probs_and_usage_are_put_together() -> None:
    chunks: list[dict[str, Any]] = [
        {
            "choices": [
                {"delta": {"content": "no "}, "logprobs": {"content": [{"token": "no ", "logprob": -1.0}]}}
            ]
        },
        {
            "choices": [
                {"delta": {"content": "idea"}, "logprobs": {"content": [{"token": "idea", "logprob": -2.0}]}}
            ]
        },
        {"choices": [{"delta": {}, "finish_reason": "length"}]},
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}},
    ]
    decode = read_completion(whole_completion(chunks), 0.0, "m")
    assert (decode.text, decode.finish, decode.usage.tokens) == ("no idea", "length", 9)
    assert [(token.text, token.logprob) for token in decode.tokens] == [("no ", -1.0), ("idea", -2.0)]


def test_tool_calls_are_put_together_by_their_index() -> None:
    pieces = [
        {"index": 0, "id": "a", "function": {"name": "add", "arguments": ""}},
        {"index": 1, "id": "b", "function": {"name": "sub", "arguments": "{}"}},
        {"index": 0, "function": {"arguments": '{"x":'}},
        {"index": 0, "function": {"arguments": " 1}"}},
    ]
    chunks = [{"choices": [{"delta": {"tool_calls": [piece]}}]} for piece in pieces]
    calls = read_completion(whole_completion(chunks), 0.0, "m").tool_calls
    assert [(call.id, call.name, call.arguments) for call in calls] == [
        ("a", "add", '{"x": 1}'),
        ("b", "sub", "{}"),
    ]


def test_a_stream_without_log_probs_has_no_tokens() -> None:
    decode = read_completion(whole_completion([{"choices": [{"delta": {"content": "hi"}}]}]), 0.0, "m")
    assert (decode.text, decode.tokens) == ("hi", ())
