"""Decisions and their passes as OpenTelemetry spans, by the conventions for generative AI."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from heedful.extras import importing
from heedful.types import Attempt, Message, Outcome, Task, Traits, Usage

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

Value = str | int | float | bool | list[str]
Attributes = dict[str, Value]


def is_set_up() -> bool:
    """Whether spans go anywhere: an SDK has been set up in this process."""
    with importing("telemetry"):
        from opentelemetry import trace
    return trace.get_tracer("heedful").start_span("probe").is_recording()


class Telemetry:
    """An observer: one span per decision, and a child span per pass.

    Spans hold no text of prompts, entries or answers unless `texts` is set. Without an SDK, OpenTelemetry
    drops the spans.
    """

    def __init__(self, tracer: "Tracer | None" = None, *, texts: bool = False) -> None:
        with importing("telemetry"):
            from opentelemetry import trace
        self._trace = trace
        self._tracer = tracer or trace.get_tracer("heedful")
        self._texts = texts

    @contextmanager
    def deciding(self, decision: str, task: Task, model: Traits) -> Iterator[Callable[[Outcome], None]]:
        attributes = {**_model_attributes(model), "heedful.decision.id": decision}
        with self._span("heedful.decision", "INTERNAL", attributes) as span:

            def tell(outcome: Outcome) -> None:
                span.set_attributes(_decision_attributes(outcome))
                if self._texts:
                    span.set_attributes(
                        _texts((Message(role="user", content=task.question),), outcome.answer)
                    )

            yield tell

    @contextmanager
    def passing(self, decision: str, source: str, model: Traits) -> Iterator[Callable[[Attempt], None]]:
        attributes: Attributes = {
            **_model_attributes(model),
            "gen_ai.operation.name": "chat",
            "heedful.decision.id": decision,
            "heedful.source": source,
        }
        with self._span(f"chat {model.name}", "CLIENT", attributes) as span:

            def tell(attempt: Attempt) -> None:
                span.set_attributes(_pass_attributes(attempt, model))
                if attempt.status == "failed":
                    self._fail(span, attempt.error.partition(":")[0])
                if self._texts:
                    span.set_attributes(_texts(attempt.prompt.messages, attempt.decode.text))

            yield tell

    @contextmanager
    def _span(self, name: str, kind: str, attributes: Attributes) -> "Iterator[Span]":
        """A current span; an exception gives its type only, because its message may quote a prompt."""
        with self._tracer.start_as_current_span(
            name,
            kind=self._trace.SpanKind[kind],
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except BaseException as error:
                self._fail(span, type(error).__name__)
                raise

    def _fail(self, span: "Span", error: str) -> None:
        span.set_attribute("error.type", error)
        span.set_status(self._trace.StatusCode.ERROR)


def _model_attributes(model: Traits) -> Attributes:
    host = urlsplit(model.endpoint).hostname
    attributes: Attributes = {
        "gen_ai.provider.name": "openai" if host else model.endpoint,
        "gen_ai.request.model": model.name,
    }
    return {**attributes, "server.address": host} if host else attributes


def _usage_attributes(usage: Usage) -> Attributes:
    return {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
    }


def _decision_attributes(outcome: Outcome) -> Attributes:
    attributes: Attributes = {
        **_usage_attributes(outcome.usage),
        "heedful.route": outcome.route.choice,
        "heedful.route.reason": outcome.route.reason,
        "heedful.calls": outcome.calls,
        "heedful.faults": [fault.stage for fault in outcome.faults],
    }
    if outcome.verdict is not None:
        attributes |= {
            "heedful.verdict": outcome.verdict.choice,
            "heedful.verdict.reason": outcome.verdict.reason,
        }
    if outcome.confidence is not None:
        attributes["heedful.confidence"] = outcome.confidence
    if outcome.assignment is not None:
        attributes |= {
            "heedful.rollout.mode": outcome.assignment.mode,
            "heedful.rollout.arm": outcome.assignment.arm,
        }
    return attributes


def _pass_attributes(attempt: Attempt, model: Traits) -> Attributes:
    temperature = model.sampling.get("temperature", attempt.prompt.temperature)
    asked: Attributes = {} if temperature is None else {"gen_ai.request.temperature": temperature}
    return {
        **asked,
        **_usage_attributes(attempt.usage),
        "gen_ai.request.max_tokens": attempt.prompt.max_tokens,
        "gen_ai.response.finish_reasons": [attempt.decode.finish],
        "heedful.pass.status": attempt.status,
        "heedful.pass.calls": attempt.calls,
        "heedful.recalls": [recall.entry.id for recall in attempt.recalls],
    }


def _texts(messages: tuple[Message, ...], said: str) -> Attributes:
    """Input and output as the conventions write them: JSON of messages with parts."""

    def written(role: str, content: str) -> dict[str, object]:
        return {"role": role, "parts": [{"type": "text", "content": content}]}

    asked = [written(message.role, message.content) for message in messages]
    return {
        "gen_ai.input.messages": json.dumps(asked, ensure_ascii=False),
        "gen_ai.output.messages": json.dumps([written("assistant", said)], ensure_ascii=False),
    }
