"""Spans of decisions and passes, read from the SDK's exporter in memory."""

import json
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from heedful import Controller, MemorySource, ModelError, Rollout, ScriptedModel, Task, arms, new_entry
from heedful.models.scripted import Reply
from heedful.telemetry import Telemetry
from heedful.types import Outcome, Prompt
from tests.making import FixedBank

SECRET = "The vault code is 1234."
UNSURE: Reply = ("no idea", -0.9)


def traced(
    *, first: Reply = UNSURE, second: Reply = ("blue", -0.1), texts: bool = False, **settings: Any
) -> tuple[Outcome | None, list[Any]]:
    """The outcome of a question with a note, and its spans in the order in which they ended."""

    def reply(prompt: Prompt) -> Reply:
        return second if SECRET in prompt.messages[-1].content else first

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    controller = Controller(
        model=ScriptedModel(script=reply),
        policy=arms.choose("notes", threshold=-0.5, margin=0.0),
        sources={"notes": MemorySource(bank=FixedBank([new_entry(SECRET, kind="fact", id="vault")]))},
        observer=Telemetry(provider.get_tracer("test"), texts=texts),
        **settings,
    )
    try:
        outcome = controller.answer_sync(Task(question="What is the code?"))
    except ModelError:
        outcome = None
    return outcome, list(exporter.get_finished_spans())


def test_a_decision_is_a_span_with_a_child_for_each_pass() -> None:
    outcome, (first, second, decision) = traced()
    assert decision.name == "heedful.decision"
    assert decision.parent is None
    for span in (first, second):
        assert (span.name, span.kind) == ("chat scripted", SpanKind.CLIENT)
        assert span.parent.span_id == decision.context.span_id
        assert span.attributes["gen_ai.operation.name"] == "chat"
        assert span.attributes["heedful.decision.id"] == outcome.decision
    assert [span.attributes["heedful.source"] for span in (first, second)] == ["none", "notes"]
    assert second.attributes["heedful.recalls"] == ("vault",)


def test_a_decision_has_model_usage_route_verdict_and_id() -> None:
    outcome, (first, second, decision) = traced(rollout=Rollout(mode="shadow"))
    told = dict(decision.attributes)
    assert told["gen_ai.request.model"] == "scripted"
    assert told["heedful.decision.id"] == outcome.decision
    assert (told["heedful.route"], told["heedful.route.reason"]) == ("consult", "unsure")
    assert (told["heedful.verdict"], told["heedful.verdict.reason"]) == ("rollback", "shadow")
    assert (told["heedful.rollout.mode"], told["heedful.rollout.arm"]) == ("shadow", "first")
    tokens = [span.attributes["gen_ai.usage.input_tokens"] for span in (first, second)]
    assert told["gen_ai.usage.input_tokens"] == sum(tokens) == outcome.usage.prompt_tokens > 0


def test_spans_hold_no_text_unless_a_setting_says_so() -> None:
    _, spans = traced()
    said = " ".join(span.to_json() for span in spans)
    assert "vault" in said, "ids are there"
    for text in (SECRET, "What is the code?", "no idea", "blue"):
        assert text not in said
    _, (_, second, decision) = traced(texts=True)
    messages = json.loads(second.attributes["gen_ai.input.messages"])
    assert SECRET in messages[-1]["parts"][0]["content"]
    assert json.loads(decision.attributes["gen_ai.output.messages"])[0]["parts"][0]["content"] == "blue"


def test_a_failed_pass_is_an_error_and_the_decision_is_not() -> None:
    _, (first, second, decision) = traced(second=ModelError(f"bad reply to {SECRET}"))
    assert [span.status.status_code for span in (first, second, decision)] == [
        StatusCode.UNSET,
        StatusCode.ERROR,
        StatusCode.UNSET,
    ]
    assert second.attributes["error.type"] == "ModelError"
    assert decision.attributes["heedful.faults"] == ("source:notes",)
    assert SECRET not in second.to_json()


def test_a_failed_first_pass_ends_both_spans_as_errors() -> None:
    outcome, spans = traced(first=ModelError("down"))
    assert outcome is None
    assert [span.status.status_code for span in spans] == [StatusCode.ERROR] * 2
    assert {span.attributes["error.type"] for span in spans} == {"ModelError"}


def test_passes_that_run_at_once_are_children_of_the_same_decision() -> None:
    dual = arms.dual(["notes", "retry"], threshold=-0.5, margins={"notes": 0.0, "retry": 0.0})
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    Controller(
        model=ScriptedModel(script=lambda prompt: UNSURE),
        policy=dual,
        sources={"notes": MemorySource(bank=FixedBank([new_entry(SECRET, kind="fact")]))},
        observer=Telemetry(provider.get_tracer("test")),
    ).answer_sync(Task(question="What?"))
    *passes, decision = exporter.get_finished_spans()
    assert len(passes) == 3
    assert {span.parent.span_id for span in passes} == {decision.context.span_id}


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:8000/v1", "embedded"])
def test_the_provider_and_the_server_are_named(endpoint: str) -> None:
    from heedful.telemetry import _model_attributes
    from heedful.types import Traits

    told = _model_attributes(Traits(name="m", endpoint=endpoint))
    if endpoint == "embedded":
        assert told == {"gen_ai.provider.name": "embedded", "gen_ai.request.model": "m"}
    else:
        assert (told["gen_ai.provider.name"], told["server.address"]) == ("openai", "127.0.0.1")
