"""Limits on size, headers, time and the number of requests."""

import threading
from pathlib import Path

from heedful.serve.admission import ServeLimits
from heedful.serve.callers import Caller, CallerKey, Callers, Rights, key_hash
from tests.faulty import FaultyServer, Play, Request, answers, hangs
from tests.serve.serving import make_service, serving
from tests.serve.test_held_stream import when


def test_a_body_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with (
        FaultyServer(lambda _: answers("x", -0.1)) as upstream,
        serving(make_service(upstream.url, tmp_path, limits=ServeLimits(body_bytes=200))) as client,
    ):
        assert (client.ask("x" * 300).status, client.ask("x").status) == (413, 200)


def test_headers_that_are_too_large_are_refused(tmp_path: Path) -> None:
    with (
        FaultyServer(lambda _: answers("x", -0.1)) as upstream,
        serving(make_service(upstream.url, tmp_path, limits=ServeLimits(header_bytes=500))) as client,
    ):
        assert client.ask(headers={"x-long": "y" * 600}).status == 431


def test_a_body_that_never_ends_times_out(tmp_path: Path) -> None:
    with (
        FaultyServer(lambda _: answers("x")) as upstream,
        serving(make_service(upstream.url, tmp_path, limits=ServeLimits(body_seconds=0.05))) as client,
    ):
        late = client.send("POST", "/v1/chat/completions", b"{", **{"Content-Length": "100"})
    assert late.status == 408


def test_an_answer_that_takes_too_long_times_out(tmp_path: Path) -> None:
    with FaultyServer(lambda _: hangs) as upstream:
        with serving(make_service(upstream.url, tmp_path, limits=ServeLimits(seconds=0.05))) as client:
            assert client.ask().status == 504
        with serving(make_service(upstream.url, tmp_path, timeout=0.05)) as client:
            slow = client.ask()
    assert (slow.status, "did not answer" in slow.json["error"]["message"]) == (504, True)


def test_requests_beyond_the_limits_are_refused_until_one_ends(tmp_path: Path) -> None:
    rights = Rights(at_once=1)
    callers = Callers(
        [CallerKey(hash=key_hash(n), caller=Caller(name=n, rights=rights)) for n in ("a", "b", "c")]
    )
    asked, release = [threading.Event(), threading.Event()], threading.Event()

    def script(request: Request) -> Play:
        asked[len(upstream.requests) - 1 if len(upstream.requests) < 3 else 0].set()
        return when(release, answers("x", -0.1))

    def ask(key: str) -> int:
        return client.ask(headers={"Authorization": f"Bearer {key}"}).status

    with (
        FaultyServer(script) as upstream,
        serving(
            make_service(upstream.url, tmp_path, limits=ServeLimits(at_once=2), callers=callers)
        ) as client,
    ):
        held = [threading.Thread(target=ask, args=(key,)) for key in ("a", "b")]
        for thread, event in zip(held, asked, strict=True):
            thread.start()
            assert event.wait(20)
        refused = (ask("a"), ask("c"))
        release.set()
        for thread in held:
            thread.join()
        assert (refused, ask("a")) == ((429, 503), 200)
