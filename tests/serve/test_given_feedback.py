"""Feedback that cannot be meant is refused."""

from pathlib import Path

import pytest

from tests.faulty import FaultyServer
from tests.serve.serving import make_service, serving
from tests.serve.test_chat_route import unsure

UNMEANT = [
    ("x", "number", "'x' is not a number; give one, or choose another metric"),
    ("?", "choice", "'?' is not a choice; give its letter or label"),
    ("7", "json:", "the metric json: has an empty path"),
    ("7", "json:a..b", "the metric json:a..b has an empty path"),
    (" ", "text", "the right answer is empty; answer needs a text"),
]


@pytest.mark.parametrize(("answer", "metric", "problem"), UNMEANT)
def test_an_answer_that_cannot_be_meant_is_refused_over_http(
    answer: str, metric: str, problem: str, tmp_path: Path
) -> None:
    with FaultyServer(unsure) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        id = client.ask().headers["x-heedful-decision"]
        refused = client.post("/v1/feedback", {"decision": id, "answer": answer, "metric": metric})
        kept = client.send("GET", f"/v1/decisions/{id}").json["feedback"]
    assert (refused.status, kept) == (400, [])
    assert problem in refused.json["error"]["message"]
    assert "--" not in refused.json["error"]["message"]


@pytest.mark.parametrize("given", [{"right": True}, {"prefer": "memory"}, {"score": 1}])
@pytest.mark.parametrize("metric", ["text", "number"])
def test_a_metric_without_an_answer_is_refused(given: dict[str, object], metric: str, tmp_path: Path) -> None:
    with FaultyServer(unsure) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        id = client.ask().headers["x-heedful-decision"]
        refused = client.post("/v1/feedback", {"decision": id, **given, "metric": metric})
        kept = client.send("GET", f"/v1/decisions/{id}").json["feedback"]
    assert (refused.status, kept) == (400, [])
    assert "metric has no effect without answer" in refused.json["error"]["message"]


@pytest.mark.parametrize(("answer", "metric"), [("about 7 am", "number"), ("B", "choice"), ("7", "json:a.0")])
def test_an_answer_that_can_be_meant_is_stored(answer: str, metric: str, tmp_path: Path) -> None:
    with FaultyServer(unsure) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        id = client.ask().headers["x-heedful-decision"]
        told = client.post("/v1/feedback", {"decision": id, "answer": answer, "metric": metric})
    assert (told.status, told.json["metric"]) == (200, metric), told.json
