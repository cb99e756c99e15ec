"""The OpenAPI description of the server."""

from collections.abc import Mapping
from typing import Any

from heedful.benchmarks.metrics import METRICS
from heedful.decision_ids import DIGITS

Json = dict[str, Any]


def _body(schema: Json) -> Json:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _reply(description: str, kind: str = "application/json", schema: Json | None = None) -> Json:
    return {"description": description, "content": {kind: {"schema": schema or {"type": "object"}}}}


def _replies(good: Json, *statuses: int) -> Json:
    refused = {str(status): _reply(_STATUSES[status], schema=_ERROR) for status in statuses}
    return {"200": good, **refused, "default": _reply("An error.")}


def _header(name: str, about: str) -> Json:
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": about,
        "schema": {"type": "string"},
    }


_STATUSES = {
    400: "The request is invalid.",
    401: "The key is missing or unknown.",
    403: "The key may not do this.",
    404: "There is no such policy or decision.",
    408: "The body arrived too slowly.",
    413: "The body is too large.",
    429: "The key has too many requests in progress.",
    431: "The headers are too large.",
    502: "The upstream cannot be reached.",
    503: "Too many requests are in progress, or a part does not work.",
    504: "There was no answer in time.",
}
_ERROR: Json = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "object", "properties": {"message": {"type": "string"}}}},
}
_CHAT: Json = {
    "type": "object",
    "description": "A chat request of the OpenAI API; the upstream judges fields that heedful does not use.",
    "properties": {
        "model": {"description": "MODEL+heedful/POLICY chooses a policy."},
        "messages": {"description": "The conversation."},
        "stream": {"description": "true: server-sent events."},
    },
    "additionalProperties": True,
}
_GRADES = ("right", "score", "answer", "prefer")
_FEEDBACK: Json = {
    "type": "object",
    "required": ["decision"],
    "additionalProperties": False,
    "properties": {
        "decision": {"type": "string", "pattern": f"^[0-9a-f]{{{DIGITS}}}$"},
        "right": {"type": "boolean"},
        "score": {"type": "number", "minimum": 0, "maximum": 1, "not": {"const": 0.5}},
        "answer": {"type": "string"},
        "prefer": {"enum": ["first", "memory", "tie"]},
        "metric": {"anyOf": [{"enum": list(METRICS)}, {"type": "string", "pattern": "^json:"}]},
    },
    "oneOf": [{"required": [name]} for name in _GRADES],
}
_LIMITS = (400, 401, 403, 404, 408, 413, 429, 431, 502, 503, 504)
_CHOICES = [
    _header("x-heedful-policy", "The policy to answer with."),
    _header("x-heedful-bank", "The bank to recall from."),
    _header("x-heedful-scope", "Who asks, as KEY=VALUE, KEY=VALUE."),
]
_ID: Json = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
_ANY: Json = {"content": {"application/json": {"schema": {}}}}
_TEXT = _reply("Counters.", "text/plain", {"type": "string"})


def _operation(summary: str, replies: Json, **more: Any) -> Json:
    return {"summary": summary, "responses": replies, **more}


DESCRIPTION: Mapping[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "heedful", "version": "1", "description": "Chat completions with controlled memory."},
    "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    "security": [{"key": []}, {}],
    "paths": {
        "/v1/chat/completions": {
            "post": _operation(
                "Answer a conversation.",
                _replies(_reply("A chat completion, or a stream of its chunks."), *_LIMITS),
                requestBody=_body(_CHAT),
                parameters=_CHOICES,
            )
        },
        "/v1/completions": {
            "post": _operation("Passed through.", _replies(_reply("The upstream's reply.")), requestBody=_ANY)
        },
        "/v1/embeddings": {
            "post": _operation("Passed through.", _replies(_reply("The upstream's reply.")), requestBody=_ANY)
        },
        "/v1/models": {"get": _operation("List the models.", _replies(_reply("Models."), 401, 502, 504))},
        "/v1/models/{id}": {
            "get": _operation(
                "Show a model.", _replies(_reply("A model."), 401, 404, 502, 504), parameters=[_ID]
            )
        },
        "/v1/decisions/{id}": {
            "get": _operation("Show a decision.", _replies(_reply("A decision."), 401, 404), parameters=[_ID])
        },
        "/v1/feedback": {
            "post": _operation(
                "Say whether an answer was right.",
                _replies(_reply("What became of the feedback."), 400, 401, 404, 413),
                requestBody=_body(_FEEDBACK),
            )
        },
        "/v1/admin/reload": {
            "post": _operation("Read the policies again.", _replies(_reply("The policies."), 401, 403))
        },
        "/metrics": {"get": _operation("Counters for Prometheus.", _replies(_TEXT, 401, 403))},
        "/healthz": {"get": _operation("Whether the server runs.", _replies(_reply("It runs.")))},
        "/readyz": {
            "get": _operation("Whether upstream and store answer.", _replies(_reply("They do."), 503))
        },
        "/openapi.json": {"get": _operation("This description.", _replies(_reply("OpenAPI.")))},
    },
}
