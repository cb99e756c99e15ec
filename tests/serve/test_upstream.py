"""What the server learns about its upstream."""

from pathlib import Path

from tests.faulty import FaultyServer, Play, Request, answers_without_logprobs, body, fails
from tests.serve.serving import make_service, serving
from tests.serve.test_chat_route import unsure

BYPASS = "x-heedful-bypass"


def silent_or_unsure(request: Request) -> Play:
    """The model `mute` ignores the wish for log-probs."""
    return answers_without_logprobs("eight") if request.body.get("model") == "mute" else unsure(request)


def test_a_model_without_log_probs_does_not_switch_control_off_for_the_others(tmp_path: Path) -> None:
    with FaultyServer(silent_or_unsure) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        mute = [client.ask(model="mute").headers.get(BYPASS) for _ in range(6)]
        other = client.ask(model="m")
    assert mute[0] is None
    assert mute[-1] == "no usable signal"
    assert (other.status, other.headers.get(BYPASS)) == (200, None)


def test_a_store_whose_file_is_gone_is_not_ready(tmp_path: Path) -> None:
    with FaultyServer(unsure) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        ready = client.send("GET", "/readyz").status
        Path(client.service.store.location).unlink()
        gone = client.send("GET", "/readyz")
    assert (ready, gone.status) == (200, 503)
    assert "is gone" in gone.body.decode()


def test_a_wrong_temperature_gets_the_upstreams_own_error(tmp_path: Path) -> None:
    def strict(request: Request) -> Play:
        if isinstance(request.body.get("temperature"), str):
            return fails(400, "temperature must be a number")
        return unsure(request)

    with FaultyServer(strict) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        refused = client.ask(temperature="hot")
    assert refused.status == 400
    assert "temperature must be a number" in refused.body.decode()


def test_a_reply_that_is_not_a_completion_comes_unchanged_and_is_named(tmp_path: Path) -> None:
    with (
        FaultyServer(lambda request: body(b"<html>busy</html>", 200)) as upstream,
        serving(make_service(upstream.url, tmp_path)) as client,
    ):
        odd = client.ask()
    assert (odd.status, odd.body, odd.headers[BYPASS]) == (200, b"<html>busy</html>", "not a chat completion")


def test_the_decision_records_the_length_that_the_request_sets(tmp_path: Path) -> None:
    with FaultyServer(unsure) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        id = client.ask(max_tokens=30).headers["x-heedful-decision"]
        recorded = client.send("GET", f"/v1/decisions/{id}").json["task"]["max_tokens"]
    assert recorded == 30


def test_a_redirect_of_the_upstream_is_the_clients_business(tmp_path: Path) -> None:
    with (
        FaultyServer(lambda request: body(b"moved", 307, Location="/v1/models")) as upstream,
        serving(make_service(upstream.url, tmp_path)) as client,
    ):
        moved = client.ask()
        asked = len(upstream.requests)
    assert (moved.status, moved.body, asked) == (307, b"moved", 1)
