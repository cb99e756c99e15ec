"""Streams: an answer that is held back until its decision, or one that is relayed as it comes."""

import asyncio

import msgspec

from heedful.errors import HeedfulError
from heedful.serve.chat_answer import answer_json, chunks_of, decision_headers
from heedful.serve.completion_stream import DONE
from heedful.serve.controlled_chat import ControlledChat
from heedful.serve.refusal import error_body, status_of
from heedful.serve.reply import EVENTS, KEEP_ALIVE, Reply, abandoned, event, settled
from heedful.serve.service import Service
from heedful.serve.upstream import UpstreamError
from heedful.types import Outcome

NO_CACHE = {"content-type": EVENTS, "cache-control": "no-cache"}


async def hold(service: Service, controlled: ControlledChat, reply: Reply) -> None:
    """Decide first and stream the chosen answer; comments keep the connection open meanwhile.

    The headers name route and verdict unless a comment had to be sent before the decision.
    """
    if service.streaming == "speculate":
        controlled.speculate()
    work = asyncio.create_task(controlled.decide(service.metrics))
    try:
        while not await settled(work, service.keep_alive):
            if not reply.started:
                await reply.start(200, {**NO_CACHE, "x-heedful-decision": controlled.decision})
            await reply.piece(KEEP_ALIVE)
        await _send_answer(work.result(), controlled, reply)
    except HeedfulError as error:
        if not reply.started:
            raise
        reply.failure = status_of(error)
        await reply.piece(event(_error(error)))
        await reply.end()
    finally:
        await abandoned(work)


async def _send_answer(outcome: Outcome, controlled: ControlledChat, reply: Reply) -> None:
    headers = decision_headers(outcome)
    if not reply.started:
        await reply.start(200, {**controlled.model.headers_of(outcome.decode), **NO_CACHE, **headers})
    chunks = chunks_of(controlled.model.call, answer_json(outcome, controlled.model))
    chunks[1]["heedful"] = {name.removeprefix("x-heedful-"): value for name, value in headers.items()}
    events = b"".join(event(msgspec.json.encode(chunk)) for chunk in chunks)
    await reply.piece(events + event(DONE))
    await reply.end()


async def relay(service: Service, controlled: ControlledChat, reply: Reply) -> None:
    """Stream the first pass as it comes, where the policy cannot replace it.

    In a shadow, the policy goes on to decide after the client has its answer.
    """
    chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
    model = controlled.model
    model.relay, model.measured = chunks.put_nowait, controlled.policy.can_consult
    model.first_ended = lambda: chunks.put_nowait(None)
    work = asyncio.create_task(controlled.decide(service.metrics))
    work.add_done_callback(lambda _: chunks.put_nowait(None))
    try:
        while (data := await chunks.get()) is not None:
            if not reply.started:
                await reply.start(200, {**NO_CACHE, **controlled.early_headers})
            await reply.piece(event(data))
        if not reply.started:  # the upstream failed, or does not stream
            await _send_answer(await work, controlled, reply)
            return
        if work.done():
            work.result()
        await reply.piece(event(DONE))
        await reply.end()
        service.finish_later(controlled.decision, work)
    except BaseException:
        await abandoned(work)
        raise


def _error(error: HeedfulError) -> bytes:
    """An error as an event, as one line: the upstream's own if it sent one."""
    if isinstance(error, UpstreamError):
        try:
            return msgspec.json.encode(msgspec.json.decode(error.reply.body))
        except msgspec.DecodeError:
            return error_body(error.reply.status, "the upstream failed")
    return error_body(status_of(error), str(error))
