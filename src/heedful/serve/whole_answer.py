"""Answers in one piece: the chosen one, or the first one where a shadow decides later."""

import asyncio

import msgspec

from heedful.serve.chat_answer import answer_json, decision_headers, first_json
from heedful.serve.controlled_chat import ControlledChat
from heedful.serve.reply import JSON, Reply, abandoned
from heedful.serve.service import Service
from heedful.types import Outcome


async def send_whole(outcome: Outcome, controlled: ControlledChat, reply: Reply) -> None:
    """Send the chosen answer."""
    own = controlled.model.headers_of(outcome.decode)
    body = msgspec.json.encode(answer_json(outcome, controlled.model))
    await reply.whole(200, body, {**own, "content-type": JSON, **decision_headers(outcome)})


async def answer_first(service: Service, controlled: ControlledChat, reply: Reply) -> None:
    """Send the first pass as soon as it is there; a shadow goes on to decide."""
    model, ended = controlled.model, asyncio.Event()
    model.first_ended = ended.set
    work = asyncio.create_task(controlled.decide(service.metrics))
    work.add_done_callback(lambda _: ended.set())
    try:
        await ended.wait()
        if work.done():
            await send_whole(work.result(), controlled, reply)
            return
        headers = {**model.completions[0].headers, "content-type": JSON, **controlled.early_headers}
        await reply.whole(200, msgspec.json.encode(first_json(model)), headers)
        service.finish_later(controlled.decision, work)
    except BaseException:
        await abandoned(work)
        raise
