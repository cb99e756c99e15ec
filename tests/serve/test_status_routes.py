"""Models, health, readiness, metrics, the description, and reloading."""

from dataclasses import replace
from pathlib import Path

from heedful import Controller, arms
from heedful.control import run_sync
from heedful.errors import UsageError
from heedful.serve.served_policies import ServedPolicy
from tests.faulty import FaultyServer, answers, body
from tests.serve.serving import make_service, serving
from tests.serve.test_chat_route import unsure


def test_models_are_listed_with_the_suffix_of_each_policy(tmp_path: Path) -> None:
    with FaultyServer(unsure) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        listed = client.send("GET", "/v1/models").json["data"]
    assert [model["id"] for model in listed] == ["scripted", "scripted+heedful/default"]


def test_a_server_is_ready_while_upstream_and_store_answer(tmp_path: Path) -> None:
    with FaultyServer(unsure) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        ready = client.send("GET", "/readyz")
        run_sync(client.service.store.aclose())
        without_store = client.send("GET", "/readyz")
        healthy = client.send("GET", "/healthz")
    with serving(make_service("http://127.0.0.1:9/v1", tmp_path)) as client:
        without_upstream = client.send("GET", "/readyz")
    assert (ready.status, healthy.status) == (200, 200)
    assert (without_store.status, list(without_store.json)) == (503, ["status", "store"])
    assert (without_upstream.status, list(without_upstream.json)) == (503, ["status", "upstream"])


def test_metrics_count_requests_decisions_and_tokens(tmp_path: Path) -> None:
    with FaultyServer(unsure) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        client.ask()
        client.ask(n=2)
        text = client.send("GET", "/metrics").body.decode()
    assert 'heedful_decisions_total{policy="default",route="consult",verdict="accept"} 1' in text
    assert 'heedful_requests_total{path="/v1/chat/completions",status="200"} 2' in text
    assert 'heedful_bypasses_total{reason="n is not 1"} 1' in text
    assert 'heedful_tokens_total{kind="prompt"} 22' in text
    assert "heedful_requests_in_progress 0" in text


def test_the_description_names_every_route(tmp_path: Path) -> None:
    with FaultyServer(unsure) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        paths = client.send("GET", "/openapi.json").json["paths"]
    assert {"/v1/chat/completions", "/v1/feedback", "/v1/decisions/{id}", "/readyz"} <= set(paths)


def test_embeddings_pass_through(tmp_path: Path) -> None:
    with (
        FaultyServer(lambda _: body(b'{"data": []}')) as upstream,
        serving(make_service(upstream.url, tmp_path)) as client,
    ):
        answer = client.post("/v1/embeddings", {"input": "x"})
    assert (answer.body, upstream.requests[0].path) == (b'{"data": []}', "/v1/embeddings")


def test_an_unknown_path_or_method_is_refused_and_never_forwarded(tmp_path: Path) -> None:
    with FaultyServer(unsure) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        refused = [
            client.send(method, path)
            for method, path in [("GET", "/v1/files"), ("GET", "/v1/chat/completions"), ("POST", "/v1/x")]
        ]
    assert ([answer.status for answer in refused], upstream.requests) == ([404, 405, 404], [])
    assert refused[0].json["error"]["message"].startswith("there is no GET /v1/files;")


def test_one_model_is_found_by_its_name_also_with_a_suffix(tmp_path: Path) -> None:
    with FaultyServer(unsure) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        names = ("scripted", "scripted+heedful/default", "other")
        answers = [client.send("GET", f"/v1/models/{name}") for name in names]
    assert [answer.json.get("id") for answer in answers] == ["scripted", "scripted+heedful/default", None]
    assert answers[2].status == 404


def test_a_reload_replaces_the_policy_and_a_failed_one_keeps_it(tmp_path: Path) -> None:
    versions: list[list[ServedPolicy]] = []

    def served(controller: Controller) -> list[ServedPolicy]:
        policy = ServedPolicy(name="default", controller=controller, banks=("fixed",))
        versions.append([replace(policy, controller=replace(controller, policy=arms.never()))])
        return [policy]

    def load() -> list[ServedPolicy]:
        if not versions:
            raise UsageError("mine.policy was edited")
        return versions.pop()

    with FaultyServer(lambda _: answers("x", -0.9)) as upstream:
        service = make_service(upstream.url, tmp_path, served=served)
        service.shelf.load = load
        with serving(service) as client:
            before = client.ask().headers["x-heedful-route"]
            reloaded = client.post("/v1/admin/reload", {})
            after = client.ask().headers["x-heedful-route"]
            failed = client.post("/v1/admin/reload", {})
            still = client.ask().headers["x-heedful-route"]
    assert (before, after, still) == ("consult", "keep", "keep")
    assert [policy["name"] for policy in reloaded.json["policies"]] == ["default"]
    assert (failed.status, failed.json["error"]["message"]) == (400, "mine.policy was edited")
