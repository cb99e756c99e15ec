"""`/v1/chat/completions`: a chat request through the control loop."""

from heedful.decision_ids import new_decision_id
from heedful.serve.chat_call import ChatCall, bypass_reason, read_call
from heedful.serve.chat_task import chat_task
from heedful.serve.controlled_chat import ControlledChat
from heedful.serve.endpoint import BYPASS, ServedRequest
from heedful.serve.held_stream import hold, relay
from heedful.serve.reply import Reply
from heedful.serve.request_model import RequestModel
from heedful.serve.service import Service, scope_of
from heedful.serve.upstream import CHAT, relayed_headers
from heedful.serve.whole_answer import answer_first, send_whole


async def chat(service: Service, request: ServedRequest, reply: Reply) -> None:
    """Answer a chat request; one that cannot be controlled passes through unchanged."""
    call = read_call(request.body)
    name = call.policy or request.header(b"x-heedful-policy")
    policy = service.shelf.choose(name, request.header(b"x-heedful-bank"), request.caller)
    scope = scope_of(request.header(b"x-heedful-scope"), request.caller, call.user)
    traits = service.upstream.traits(call.model)
    reason = bypass_reason(call.fields) or ("no usable signal" if policy.lacks_signal(traits) else "")
    if reason:
        service.metrics.count("bypasses", reason)
        await pass_through(service, CHAT, call.body, reason, reply)
        return
    task = chat_task(call, policy.controller.template, scope, service.query_turns)
    model = RequestModel(
        upstream=service.upstream, call=call, chat=task, defaults=policy.defaults, traits=traits
    )
    try:
        await _answer(service, ControlledChat(policy, model, new_decision_id()), call, reply)
    finally:
        await model.aclose()


async def _answer(service: Service, controlled: ControlledChat, call: ChatCall, reply: Reply) -> None:
    if call.stream:
        streamed = relay if controlled.serves_first else hold
        await streamed(service, controlled, reply)
        return
    if controlled.decides_later:
        await answer_first(service, controlled, reply)
        return
    await send_whole(await controlled.decide(service.metrics), controlled, reply)


async def pass_through(service: Service, path: str, body: bytes, reason: str, reply: Reply) -> None:
    """Send a body to the upstream and its reply to the client, byte for byte."""
    async with service.upstream.opened("POST", path, body) as response:
        await reply.start(response.status, {**relayed_headers(response.headers), BYPASS: reason})
        while piece := await response.piece():
            await reply.piece(piece)
        await reply.end()
