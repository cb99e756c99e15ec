"""The chat adapter against a real server on loopback that fails in every way it may fail."""

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from heedful import (
    ChatModel,
    Controller,
    LogprobError,
    MissingError,
    ModelError,
    RequestError,
    Task,
    UsageError,
    arms,
)
from heedful.stages.confidence import check_logprobs
from heedful.testing import check_model, check_model_fails_openly
from heedful.types import Decode, Message, Prompt, Usage
from tests.faulty import (
    Exchange,
    FaultyServer,
    Play,
    Request,
    answers,
    answers_in_tokens,
    answers_without_logprobs,
    babbles,
    body,
    completion,
    cuts_the_stream,
    fails,
    hangs,
    hangs_up,
    in_turn,
    sends,
    single_bytes,
    stalls,
    truncates,
    words,
)

PROMPT = Prompt(messages=(Message(role="user", content="Which capital?"),), max_tokens=7)
SECRET = "sk-entirely-secret-0123456789"


class Naps(list[float]):
    """Stands in for sleeping: keeps how long it would have been."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def chat(server: FaultyServer, **settings: Any) -> ChatModel:
    return ChatModel(**{"base_url": server.url, "sleep": Naps(), **settings})


def waits(model: ChatModel) -> "Naps":
    assert isinstance(model.sleep, Naps)
    return model.sleep


def ask(model: ChatModel, prompt: Prompt = PROMPT) -> Decode:
    return asyncio.run(model.decode(prompt))


def asked(model: ChatModel, server: FaultyServer, prompt: Prompt = PROMPT) -> Request:
    """The request that a model sends for a prompt."""
    ask(model, prompt)
    return server.requests[-1]


def failure(model: ChatModel) -> str:
    with pytest.raises(ModelError) as caught:
        ask(model)
    return str(caught.value)


def test_the_request_carries_the_prompt_and_asks_for_logprobs() -> None:
    with FaultyServer(in_turn(answers("Paris"))) as server:
        request = asked(chat(server, model="m", top_logprobs=3), server)
    assert request.path == "/v1/chat/completions"
    assert request.body == {
        "messages": [{"role": "user", "content": "Which capital?"}],
        "max_tokens": 7,
        "temperature": 0.0,
        "model": "m",
        "logprobs": True,
        "top_logprobs": 3,
    }


def test_a_seed_and_a_json_schema_are_sent() -> None:
    schema = {"type": "object"}
    with FaultyServer(in_turn(answers("{}"))) as server:
        sent = asked(chat(server), server, replace(PROMPT, seed=5, schema=schema, temperature=0.7)).body
    assert (sent["seed"], sent["temperature"]) == (5, 0.7)
    assert sent["response_format"]["type"] == "json_schema"
    assert sent["response_format"]["json_schema"]["schema"] == schema


def test_a_model_that_wants_no_logprobs_does_not_ask_for_them() -> None:
    with FaultyServer(in_turn(answers_without_logprobs("Paris"))) as server:
        model = chat(server, logprobs=False)
        sent = asked(model, server).body
    assert not {"logprobs", "top_logprobs", "model", "seed", "response_format"} & set(sent)
    assert (model.traits.logprobs, model.traits.top_logprobs) == (False, 0)


@pytest.mark.parametrize(
    ("given", "path"),
    [("", "/v1"), ("/", "/v1"), ("/v1", "/v1"), ("/v1/", "/v1"), ("/api/openai", "/api/openai")],
)
def test_a_base_url_without_a_path_gets_v1(given: str, path: str) -> None:
    with FaultyServer(in_turn(answers("Paris"))) as server:
        request = asked(chat(server, base_url=server.address + given), server)
    assert request.path == f"{path}/chat/completions"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8000",
        "ftp://host/v1",
        "http://",
        "http:///v1",
        "http://:8000",
        "http://[::1",
        "http://h:99999",
    ],
)
def test_a_bad_url_is_a_usage_error_that_shows_it(url: str) -> None:
    with pytest.raises(UsageError, match="is not a valid URL") as caught:
        ChatModel(base_url=url)
    assert repr(url) in str(caught.value)


def test_a_url_with_a_password_in_it_is_refused_without_repeating_the_password() -> None:
    with pytest.raises(UsageError, match="password") as caught:
        ChatModel(base_url=f"http://me:{SECRET}@127.0.0.1:8000/v1")
    assert SECRET not in str(caught.value)


def test_the_key_comes_from_the_environment_and_is_sent_as_a_bearer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    with FaultyServer(in_turn(answers("Paris"))) as server:
        assert "Authorization" not in asked(chat(server), server).headers
        from_environment = asked(chat(server, key_from="MY_KEY"), server).headers
        given = asked(chat(server, key="mine", key_from="MY_KEY"), server).headers
    assert from_environment["Authorization"] == f"Bearer {SECRET}"
    assert given["Authorization"] == "Bearer mine"


def test_a_line_break_after_the_key_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"{SECRET}\n")
    with FaultyServer(in_turn(answers("Paris"))) as server:
        assert asked(chat(server), server).headers["Authorization"] == f"Bearer {SECRET}"


def test_a_key_that_cannot_be_sent_names_its_variable_and_not_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"{SECRET}\n{SECRET}")
    with (
        FaultyServer(in_turn(answers("Paris"))) as server,
        pytest.raises(MissingError, match="OPENAI_API_KEY") as caught,
    ):
        ask(chat(server))
    assert SECRET not in str(caught.value)


def test_a_refused_key_names_the_variable_to_set_and_is_not_tried_again() -> None:
    with FaultyServer(in_turn(fails(401))) as server, pytest.raises(MissingError) as caught:
        ask(chat(server, key_from="MY_KEY"))
    assert "MY_KEY" in str(caught.value)
    assert "401" in str(caught.value)
    assert len(server.requests) == 1


def test_a_forbidden_request_quotes_the_reason_and_does_not_call_the_key_wrong() -> None:
    with FaultyServer(in_turn(fails(403, "this region is not supported"))) as server:
        said = failure(chat(server, key_from="MY_KEY"))
    assert "refused access (403)" in said
    assert "this region is not supported" in said
    assert "rejected the key" not in said
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"timeout": float("inf")}, "finite number of seconds"),
        ({"timeout": float("nan")}, "finite number of seconds"),
        ({"timeout": 0}, "finite number of seconds"),
        ({"timeout": "60"}, "finite number of seconds"),
        ({"retries": -1}, "retries.* at least 0"),
        ({"concurrency": 0}, "concurrency.* at least 1"),
        ({"concurrency": 2.5}, "concurrency.* whole number"),
        ({"top_logprobs": -1}, "top_logprobs.* at least 0"),
        ({"model": None}, "model.* text"),
        ({"base_url": None}, "not a valid URL"),
        ({"base_url": 80}, "not a valid URL"),
    ],
)
def test_a_setting_that_cannot_work_is_refused_at_once(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        ChatModel(**{"base_url": "http://127.0.0.1:9/v1", **settings})


@pytest.mark.parametrize(
    "play",
    [fails(status, f"your key {SECRET} is odd") for status in (400, 401, 404, 429, 500)]
    + [body(SECRET.encode()), sends([SECRET]), sends({"odd": SECRET}), hangs_up],
)
def test_the_key_stands_in_no_repr_and_no_error_even_if_the_server_repeats_it(
    play: Play,
) -> None:
    with FaultyServer(in_turn(play)) as server:
        model = chat(server, key=SECRET, retries=0)
        with pytest.raises((ModelError, MissingError)) as caught:
            ask(model)
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(model)
    assert SECRET not in repr(model.traits)


def test_the_answer_comes_with_its_tokens_usage_and_finish() -> None:
    with FaultyServer(in_turn(answers("Paris of course", -0.25, cached=8, finish="length"))) as server:
        model = chat(server, model="m")
        decode = ask(model)
    assert (decode.text, decode.answer, decode.finish) == ("Paris of course", "Paris of course", "length")
    assert decode.usage == Usage(prompt_tokens=11, completion_tokens=3, cached_tokens=8)
    assert [token.text for token in decode.tokens] == ["Paris", " of", " course"]
    assert {token.logprob for token in decode.tokens} == {-0.25}
    assert decode.tokens[0].top == (("Paris", -0.25), ("~1", -1.25))
    assert server.url in decode.model


def test_the_adapter_conforms() -> None:
    with FaultyServer(in_turn(answers("blue it is"))) as server:
        asyncio.run(check_model(chat(server)))
    asyncio.run(check_model_fails_openly(ChatModel(base_url=server.url, sleep=Naps())))


@pytest.mark.parametrize("text", ["Zürich", "北京 is not 東京", "a 😀 face", "é"])
def test_a_character_split_over_tokens_rebuilds_the_text(text: str) -> None:
    with FaultyServer(in_turn(answers_in_tokens(text, single_bytes(text, -0.5)))) as server:
        decode = ask(chat(server))
    assert "".join(token.text for token in decode.tokens) == text
    assert len(decode.tokens) == len(text.encode())
    check_logprobs(decode)


@pytest.mark.parametrize("text", ["a 😀", "a \ufffd", "a "])
def test_a_character_that_the_token_limit_cut_does_not_spoil_the_logprobs(text: str) -> None:
    pieces = [(b"a ", -0.5), *single_bytes("😀", -0.5)]
    cut = pieces if text == "a 😀" else pieces[:3]
    with FaultyServer(in_turn(answers_in_tokens(text, cut))) as server:
        check_logprobs(ask(chat(server)))


def test_tokens_without_bytes_are_taken_by_their_text() -> None:
    reply = completion("Zürich it is", words("Zürich it is", -0.5))
    for token in reply["choices"][0]["logprobs"]["content"]:
        token["bytes"] = None
    with FaultyServer(in_turn(sends(reply))) as server:
        decode = ask(chat(server))
    assert [token.text for token in decode.tokens] == ["Zürich", " it", " is"]


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None, "prompt_tokens_details": None}])
def test_usage_that_is_not_told_counts_as_nothing(usage: dict[str, None] | None) -> None:
    reply = {**completion("Paris", words("Paris", -0.5)), "usage": usage}
    with FaultyServer(in_turn(sends(reply))) as server:
        assert ask(chat(server)).usage == Usage()


def test_a_message_without_content_is_an_empty_answer() -> None:
    reply = completion("", None)
    reply["choices"][0]["message"]["content"] = None
    with FaultyServer(in_turn(sends(reply))) as server:
        assert ask(chat(server)).text == ""


@pytest.mark.parametrize(
    "odd",
    [
        ["no", "object"],
        {"content": "words"},
        {"content": [{"token": "Paris"}]},
        {"content": [{"token": "Paris", "logprob": None}]},
        {"content": [{"token": "Paris", "logprob": "sure"}]},
        {"content": [{"token": "Paris", "logprob": -(10**400)}]},
        {"content": [{"token": "Paris", "logprob": -0.1, "bytes": [999]}]},
        {"content": [{"token": 7, "logprob": -0.1}]},
        {"tokens": ["Paris"], "token_logprobs": [-0.1]},
    ],
)
def test_logprobs_that_cannot_be_read_do_not_cost_the_answer(
    odd: dict[str, list[Any] | str] | list[str],
) -> None:
    reply = completion("Paris", None)
    reply["choices"][0]["logprobs"] = odd
    with FaultyServer(in_turn(sends(reply))) as server:
        decode = ask(chat(server))
    assert (decode.text, decode.tokens) == ("Paris", ())
    with pytest.raises(LogprobError, match="no log-probs"):
        check_logprobs(decode)


def test_half_a_character_in_the_text_is_replaced_so_that_it_can_be_written_down() -> None:
    with FaultyServer(in_turn(body(b'{"choices": [{"message": {"content": "a \\ud83d"}}]}'))) as server:
        assert ask(chat(server)).text.encode() == "a \ufffd".encode()


@pytest.mark.parametrize(
    "play", [fails(429), fails(500), fails(503), truncates, cuts_the_stream, hangs_up, babbles]
)
def test_a_passing_fault_is_tried_again(play: Play) -> None:
    with FaultyServer(in_turn(play, play, answers("Paris"))) as server:
        model = chat(server)
        assert ask(model).text == "Paris"
    assert len(server.requests) == 3
    assert len(waits(model)) == 2
    assert server.requests[0].body == server.requests[2].body


def test_the_waits_double() -> None:
    with FaultyServer(in_turn(fails(500))) as server:
        model = chat(server, retries=4)
        failure(model)
    shortest = [0.25, 0.5, 1.0, 2.0]
    assert len(waits(model)) == len(shortest)
    assert all(low <= wait <= 2 * low for low, wait in zip(shortest, waits(model), strict=True))


def test_many_retries_never_wait_longer_than_a_minute() -> None:
    with FaultyServer(in_turn(fails(500))) as server:
        model = chat(server, retries=11)
        assert "tried 12 times" in failure(model)
    assert max(waits(model)) == 60


@pytest.mark.parametrize("play", [fails(429), fails(502), truncates, cuts_the_stream, hangs_up, babbles])
@pytest.mark.parametrize("retries", [0, 2])
def test_a_fault_that_stays_is_given_up_with_the_url_and_the_number_of_tries(
    play: Play, retries: int
) -> None:
    with FaultyServer(in_turn(play)) as server:
        said = failure(chat(server, retries=retries))
    assert f"{server.url}/chat/completions" in said
    assert f"tried {retries + 1} time" in said
    assert len(server.requests) == retries + 1


def test_a_server_that_is_not_there_is_named() -> None:
    with FaultyServer(in_turn(hangs_up)) as server:
        """Only its port is wanted: nobody listens there afterwards."""
    naps = Naps()
    assert server.url in failure(ChatModel(base_url=server.url, sleep=naps))
    assert len(naps) == 3


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(("told", "waited"), [("7", 7.0), ("0.5", 0.5), ("0", 0.0), ("-3", 0.0)])
def test_retry_after_in_seconds_is_honoured(status: int, told: str, waited: float) -> None:
    with FaultyServer(in_turn(fails(status, retry_after=told), answers("Paris"))) as server:
        model = chat(server)
        ask(model)
    assert waits(model) == [waited]


@pytest.fixture
def _far_from_greenwich() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "XYZ-9")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("_far_from_greenwich")
@pytest.mark.parametrize("form", ["%a, %d %b %Y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y"])
def test_retry_after_as_a_date_is_honoured(form: str) -> None:
    told = (datetime.now(UTC) + timedelta(seconds=50)).strftime(form)
    with FaultyServer(in_turn(fails(429, retry_after=told), answers("Paris"))) as server:
        model = chat(server)
        ask(model)
    assert 1 < waits(model)[0] <= 50


def test_a_date_that_has_passed_is_not_waited_for() -> None:
    passed = fails(429, retry_after="Sun, 06 Nov 1994 08:49:37 GMT")
    with FaultyServer(in_turn(passed, answers("Paris"))) as server:
        model = chat(server)
        ask(model)
    assert waits(model) == [0.0]


@pytest.mark.parametrize("told", ["soon", "", "nan", "Sun, 99 Nov 1994 08:49:37 GMT"])
def test_a_retry_after_that_cannot_be_read_means_the_usual_wait(told: str) -> None:
    with FaultyServer(in_turn(fails(429, retry_after=told), answers("Paris"))) as server:
        model = chat(server)
        ask(model)
    assert 0.25 <= waits(model)[0] <= 0.5


@pytest.mark.parametrize("told", ["3600", "inf", "Fri, 06 Nov 2500 08:49:37 GMT"])
def test_a_wait_that_is_too_long_is_not_begun(told: str) -> None:
    with FaultyServer(in_turn(fails(429, retry_after=told))) as server:
        model = chat(server)
        said = failure(model)
    assert "429" in said
    assert "try again in" in said
    assert (len(server.requests), waits(model)) == (1, [])


@pytest.mark.parametrize("play", [hangs, stalls])
def test_a_server_that_does_not_answer_in_time_is_a_model_error(play: Play) -> None:
    with FaultyServer(in_turn(play)) as server:
        said = failure(chat(server, timeout=0.3))
    assert f"{server.url}/chat/completions did not answer within 0.3 s" in said


@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_refused_request_says_what_the_server_said_and_is_not_tried_again(status: int) -> None:
    with FaultyServer(in_turn(fails(status, "the context is too long"))) as server:
        said = failure(chat(server))
    assert f"{server.url}/chat/completions returned {status}" in said
    assert "the context is too long" in said
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "play",
    [
        body(b"<html>hello</html>"),
        body(b""),
        body(b"\xff\xfe\x00"),
        body(b"[" * 100_000),
        body(b"not gzip", 200, **{"Content-Encoding": "gzip"}),
        sends([]),
        sends("text"),
        sends(None),
        sends({}),
        sends({"choices": []}),
        sends({"choices": None}),
        sends({"choices": [{}]}),
        sends({"choices": {"0": 1}}),
        sends({"choices": [{"message": "text"}]}),
        sends({"choices": [{"message": {"content": ["parts"]}}]}),
        sends({"choices": [{"message": {"content": 7}}]}),
        sends({"choices": [{"message": {"content": "x"}}], "usage": "much"}),
        sends({"error": {"message": "out of memory"}}),
    ],
)
def test_an_answer_that_is_no_chat_completion_is_a_model_error_that_names_the_url(
    play: Play,
) -> None:
    with FaultyServer(in_turn(play)) as server:
        assert server.url in failure(chat(server, retries=0))


def test_no_more_requests_are_open_at_once_than_concurrency_allows() -> None:
    together = threading.Barrier(3)

    def play(exchange: Exchange) -> None:
        together.wait(timeout=60)
        answers("Paris")(exchange)

    async def many(model: ChatModel) -> list[Decode]:
        return await asyncio.gather(*(model.decode(PROMPT) for _ in range(12)))

    with FaultyServer(lambda request: play) as server:
        decodes = asyncio.run(many(chat(server, concurrency=3)))
    assert [decode.text for decode in decodes] == ["Paris"] * 12
    assert server.most_at_once == 3


def test_one_failing_request_gives_its_place_to_the_next() -> None:
    async def many(model: ChatModel) -> list[Decode | BaseException]:
        return await asyncio.gather(*(model.decode(PROMPT) for _ in range(4)), return_exceptions=True)

    with FaultyServer(in_turn(fails(400), hangs_up, answers("Paris"))) as server:
        results = asyncio.run(many(chat(server, concurrency=1, retries=0)))
    assert [type(result) for result in results] == [RequestError, ModelError, Decode, Decode]


def test_one_model_answers_in_several_event_loops_and_leaves_nothing_open() -> None:
    with FaultyServer(in_turn(answers("Paris"))) as server:
        controller = Controller(model=chat(server), policy=arms.never())
        found = [controller.answer_sync(Task(question="Which capital?")).answer for _ in range(3)]
        gc.collect()  # pytest turns what is left open into an error
    assert found == ["Paris"] * 3


def test_a_model_that_is_dropped_within_its_loop_leaves_nothing_open() -> None:
    async def drop_some(server: FaultyServer) -> None:
        for _ in range(3):
            await chat(server).decode(PROMPT)

    with FaultyServer(in_turn(answers("Paris"))) as server:
        asyncio.run(drop_some(server))
        gc.collect()


def test_a_model_does_not_pile_up_event_loops_that_have_ended() -> None:
    async def loop_of(model: ChatModel) -> weakref.ref[asyncio.AbstractEventLoop]:
        await model.decode(PROMPT)
        return weakref.ref(asyncio.get_running_loop())

    with FaultyServer(in_turn(answers("Paris"))) as server:
        model = chat(server)
        ended = [asyncio.run(loop_of(model)) for _ in range(4)]
    gc.collect()
    assert [loop() for loop in ended[:3]] == [None] * 3


def test_a_model_with_another_setting_keeps_to_that_setting() -> None:
    async def both(model: ChatModel) -> None:
        await model.decode(PROMPT)
        await replace(model, timeout=0.3).decode(PROMPT)

    with (
        FaultyServer(in_turn(answers("Paris"), hangs)) as server,
        pytest.raises(ModelError, match=r"within 0\.3 s"),
    ):
        asyncio.run(both(chat(server, timeout=20)))


def test_an_abandoned_request_frees_its_place() -> None:
    arrived = threading.Event()

    def play(exchange: Exchange) -> None:
        arrived.set()
        hangs(exchange)

    async def abandon_one(model: ChatModel) -> Decode:
        first = asyncio.create_task(model.decode(PROMPT))
        second = asyncio.create_task(model.decode(PROMPT))
        await asyncio.to_thread(arrived.wait, 60)
        first.cancel()
        return await second

    with FaultyServer(in_turn(play, answers("Paris"))) as server:
        assert asyncio.run(abandon_one(chat(server, concurrency=1))).text == "Paris"


def reasoner(request: Request) -> Play:
    """Rejects what a reasoning model rejects, one field at a time."""
    for name in ("logprobs", "max_tokens", "temperature"):
        if name in request.body:
            return fails(400, f"Unsupported parameter: '{name}' is not supported with this model.")
    return answers_without_logprobs("<think>Lyon? No.</think>Paris")


def test_fields_that_an_endpoint_rejects_by_name_are_left_out_from_then_on() -> None:
    with FaultyServer(reasoner) as server:
        model = chat(server)
        assert model.traits.logprobs
        assert ask(model).text.endswith("Paris")
        assert len(server.requests) == 4
        sent = asked(model, server).body
        assert len(server.requests) == 5
    assert model.refused == {"logprobs", "max_tokens", "temperature"}
    assert (model.traits.logprobs, model.traits.top_logprobs) == (False, 0)
    assert sent["max_completion_tokens"] == 7
    assert not {"logprobs", "top_logprobs", "temperature", "max_tokens"} & set(sent)


def test_an_endpoint_that_allows_no_alternatives_still_gives_logprobs() -> None:
    with FaultyServer(
        lambda r: fails(422, "top_logprobs: extra field") if "top_logprobs" in r.body else answers("Paris")
    ) as server:
        model = chat(server)
        assert ask(model).tokens
    assert (model.traits.logprobs, model.traits.top_logprobs) == (True, 0)


def test_a_field_that_was_named_but_not_to_blame_is_sent_again() -> None:
    with FaultyServer(in_turn(fails(400, "max_tokens and the prompt exceed the context"))) as server:
        model = chat(server)
        with pytest.raises(RequestError, match="exceed the context"):
            ask(model)
    assert [set(r.body) & {"max_tokens", "max_completion_tokens"} for r in server.requests] == [
        {"max_tokens"},
        {"max_completion_tokens"},
    ]
    assert model.refused == frozenset()


def test_a_temperature_that_is_too_high_is_the_callers_mistake() -> None:
    with FaultyServer(in_turn(fails(400, "temperature is too high"))) as server:
        model = chat(server)
        with pytest.raises(RequestError, match="too high"):
            ask(model, replace(PROMPT, temperature=1.5))
    assert len(server.requests) == 1


@pytest.mark.parametrize("field", ["temperature", "messages", "model", "max_completion_tokens", "stream"])
def test_extra_body_fields_cannot_replace_those_of_the_prompt(field: str) -> None:
    with pytest.raises(UsageError, match=f"cannot set {field}, which heedful sets itself"):
        ChatModel(base_url="http://127.0.0.1:9/v1", extra={field: 3})


def test_extra_headers_and_body_fields_are_sent_and_identify_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TENANT", "blue")
    with FaultyServer(in_turn(answers("Paris"))) as server:
        model = chat(server, headers={"X-Tenant": "$TENANT"}, extra={"reasoning_effort": "low", "top_k": 9})
        request = asked(model, server)
    assert request.headers["X-Tenant"] == "blue"
    assert (request.body["reasoning_effort"], request.body["top_k"]) == ("low", 9)
    assert model.traits.fingerprint != replace(model, extra={}).traits.fingerprint
    assert "blue" not in repr(model)
