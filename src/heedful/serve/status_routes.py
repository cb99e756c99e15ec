"""`/v1/models`, `/healthz`, `/readyz`, `/metrics`, `/openapi.json` and `/v1/admin/reload`."""

import msgspec

from heedful.decisions import policy_id
from heedful.serve.chat_call import SUFFIX
from heedful.serve.chat_route import pass_through
from heedful.serve.endpoint import BYPASS, ServedRequest, send_json
from heedful.serve.openapi import DESCRIPTION
from heedful.serve.refusal import RefusalError
from heedful.serve.reply import Reply
from heedful.serve.request_log import LOG
from heedful.serve.service import Service
from heedful.serve.upstream import relayed_headers


async def models(service: Service, request: ServedRequest, reply: Reply) -> None:
    """The upstream's models, also with the suffix of each policy that the caller may name."""
    await reply.whole(*await _listed_models(service, request))


async def one_model(service: Service, request: ServedRequest, reply: Reply) -> None:
    """One model of that list."""
    status, body, headers = await _listed_models(service, request)
    if status != 200 or BYPASS in headers:
        await reply.whole(status, body, headers)
        return
    name = request.path["id"]
    known = [model for model in msgspec.json.decode(body)["data"] if model["id"] == name]
    if not known:
        raise RefusalError(404, f"there is no model {name!r}; GET /v1/models lists them")
    await send_json(reply, known[0])


async def _listed_models(service: Service, request: ServedRequest) -> tuple[int, bytes, dict[str, str]]:
    names = dict.fromkeys(policy.name for policy in service.shelf.policies)
    allowed = [name for name in names if request.caller.rights.allows_policy(name)]
    async with service.upstream.opened("GET", "/models") as response:
        status, headers, body = response.status, relayed_headers(response.headers), await response.whole()
    try:
        listed = msgspec.json.decode(body)
        suffixed = [{**m, "id": f"{m['id']}{SUFFIX}/{name}"} for m in listed["data"] for name in allowed]
        body = msgspec.json.encode({**listed, "data": [*listed["data"], *suffixed]})
    except (msgspec.DecodeError, LookupError, TypeError):
        headers[BYPASS] = "unreadable list"
    return status, body, headers


async def embeddings(service: Service, request: ServedRequest, reply: Reply) -> None:
    await pass_through(service, "/embeddings", request.body, "no chat", reply)


async def completions(service: Service, request: ServedRequest, reply: Reply) -> None:
    await pass_through(service, "/completions", request.body, "no chat", reply)


async def health(service: Service, request: ServedRequest, reply: Reply) -> None:
    await send_json(reply, {"status": "ok"})


async def ready(service: Service, request: ServedRequest, reply: Reply) -> None:
    """Whether the upstream and the store answer; a server without memory is ready, and says so.

    Anybody may ask, but only an admin learns the names of files, hosts and banks.
    """
    problems = await service.unready()
    without: dict[str, object] = {"without_memory": service.without_memory} if service.without_memory else {}
    found = {**problems, **without}
    if found and not _is_admin(service, request):
        found = dict.fromkeys(found, "an admin's key shows why")
    await send_json(reply, {"status": "unready" if problems else "ready", **found}, 503 if problems else 200)


def _is_admin(service: Service, request: ServedRequest) -> bool:
    """Whether a request to an open route has an admin's key, or needs none."""
    try:
        return service.caller(request.headers).rights.admin
    except RefusalError:
        return False


async def metrics(service: Service, request: ServedRequest, reply: Reply) -> None:
    """The counters of all callers together."""
    if not request.caller.rights.admin:
        raise RefusalError(403, "this key is not an admin's; the counters are those of all callers")
    gauges = {
        "requests_in_progress": service.admission.running.total(),
        "decisions_waiting": service.journal.waiting,
        "decisions_dropped": service.journal.dropped,
    }
    body = service.metrics.text(gauges).encode()
    await reply.whole(200, body, {"content-type": "text/plain; version=0.0.4; charset=utf-8"})


async def openapi(service: Service, request: ServedRequest, reply: Reply) -> None:
    await send_json(reply, DESCRIPTION)


async def reload(service: Service, request: ServedRequest, reply: Reply) -> None:
    """Read keys and policies again; requests in progress keep theirs."""
    if not request.caller.rights.admin:
        raise RefusalError(403, "this key is not an admin's; ask the operator to reload")
    policies = await service.reload()
    served = [{"name": policy.name, "policy": policy_id(policy.controller.policy)} for policy in policies]
    LOG.info("reload", {"policies": served})
    await send_json(reply, {"policies": served})
