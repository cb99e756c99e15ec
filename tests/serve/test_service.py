"""Spans of a served request."""

from dataclasses import replace
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from heedful import Controller
from heedful.serve.served_policies import ServedPolicy
from heedful.telemetry import Telemetry
from tests.faulty import FaultyServer
from tests.serve.serving import NOTE, make_service, serving
from tests.serve.test_chat_route import GUESS, KNOWN, unsure


def test_a_served_request_makes_spans_without_texts(tmp_path: Path) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    def served(controller: Controller) -> list[ServedPolicy]:
        observed = replace(controller, observer=Telemetry(provider.get_tracer("test")))
        return [ServedPolicy(name="default", controller=observed, banks=("fixed",))]

    with FaultyServer(unsure) as upstream:
        service = make_service(upstream.url, tmp_path, served=served)
        with serving(service) as client:
            id = client.ask("When does the desk open?", temperature=0.7).headers["x-heedful-decision"]
    first, second, decision = exporter.get_finished_spans()
    assert [first.name, second.name, decision.name] == ["chat m", "chat m", "heedful.decision"]
    assert decision.attributes is not None
    assert (decision.attributes["heedful.decision.id"], decision.attributes["heedful.verdict"]) == (
        id,
        "accept",
    )
    assert first.attributes is not None
    assert first.attributes["gen_ai.request.temperature"] == 0.7
    told = "".join(span.to_json() for span in (first, second, decision))
    assert not [text for text in ("desk open", NOTE.text, GUESS, KNOWN) if text in told]
