"""`/v1/decisions/{id}` and `/v1/feedback`."""

import asyncio
import re

import msgspec

from heedful.benchmarks.metrics import METRICS
from heedful.decision_ids import DIGITS
from heedful.decisions import decision_fields
from heedful.errors import UsageError
from heedful.records import Decision
from heedful.serve.batched_journal import BATCH_SECONDS, answering_within
from heedful.serve.endpoint import ServedRequest, send_json
from heedful.serve.given_feedback import GivenFeedback, feedback_on, receipt_fields
from heedful.serve.refusal import RefusalError
from heedful.serve.reply import Reply
from heedful.serve.service import Service

_ID = re.compile(f"[0-9a-f]{{{DIGITS}}}")
STORE_CALLS = 3
"""Calls of the store by one request: write what waits, find the decision, read or store its feedback."""
LOOKS = 4
"""How often a decision is looked for: another server writes those it made in its next batch."""


async def show_decision(service: Service, request: ServedRequest, reply: Reply) -> None:
    """A decision of the caller, with its feedback."""
    async with answering_within(STORE_CALLS * service.journal.store_seconds):
        decision = await _own_decision(service, request, request.path["id"])
        given = (await service.feedback.of([decision]))[decision.id]
    await send_json(reply, {**decision_fields(decision), "feedback": given})


async def give_feedback(service: Service, request: ServedRequest, reply: Reply) -> None:
    """Store feedback on a decision of the caller; sent twice it counts once."""
    try:
        given = msgspec.json.decode(request.body, type=GivenFeedback)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RefusalError(400, f"the body is not feedback: {error}") from error
    if given.metric not in METRICS and not given.metric.startswith("json:"):
        # a metric of the form python:MODULE:FUNCTION runs code, which no request may choose
        known = ", ".join(METRICS)
        raise RefusalError(400, f"unknown metric {given.metric!r}; choose {known} or json:PATH")
    async with answering_within(STORE_CALLS * service.journal.store_seconds):
        said = feedback_on(await _own_decision(service, request, given.decision), given)
        receipt = await service.feedback.give(said)
    service.metrics.count("feedback", said.kind)
    await send_json(reply, receipt_fields(said, receipt))


async def _own_decision(service: Service, request: ServedRequest, id: str) -> Decision:
    """A decision that is on disk; one of another caller is as unknown as one that never was."""
    whose = "this key has" if request.caller.name else "there is"
    unknown = RefusalError(404, f"{whose} no such decision; the header x-heedful-decision names one")
    if not _ID.fullmatch(id):
        raise unknown
    await service.store.ready()  # a file that was deleted still takes writes, which nobody will find
    await service.finished(id, service.journal.store_seconds)
    try:
        decision = await _found(service, id)
    except UsageError as error:
        raise unknown from error
    if not request.caller.owns(decision.task.scope):
        raise unknown
    return decision


async def _found(service: Service, id: str) -> Decision:
    for _ in range(LOOKS - 1):
        try:
            return await service.journal.find(id)
        except UsageError:
            await asyncio.sleep(BATCH_SECONDS / 2)
    return await service.journal.find(id)
