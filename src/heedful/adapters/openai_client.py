"""`wrap_openai`: an OpenAI client whose chat completions are controlled."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from heedful.adapters.chat_task import ChatTask, Untouched, chat_task
from heedful.adapters.client_model import ClientModel, is_async, without_logprobs
from heedful.adapters.held_stream import HeldAsyncStream, HeldStream
from heedful.control import Controller, run_sync
from heedful.errors import UsageError
from heedful.ports import Journal
from heedful.types import Outcome, Task

if TYPE_CHECKING:
    from heedful.protocol.bundle import Bundle

Client = TypeVar("Client")
NOTHING_ASKED = ChatTask(task=Task(question="?"), messages=())


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseNote:
    """What heedful did with a request; `response.heedful`."""

    decision: str = ""
    """Id of the decision; empty if the request was passed on untouched."""
    outcome: Outcome | None = None
    untouched: str = ""
    """Why the request was passed on untouched."""


def wrap_openai(
    client: Client,
    policy: "Bundle | Path | str | None" = None,
    *,
    controller: Controller | None = None,
    journal: Journal | None = None,
    logprobs: bool = True,
) -> Client:
    """The client with control over `chat.completions.create`, sync or async; everything else is untouched.

    `policy` is a bundle of `heedful study export`, whose decisions go to the journal. `controller` gives
    policy, sources, journal and rollout by itself; its model is replaced by the client. A client whose
    endpoint has no log-probs needs `logprobs=False` and a policy whose signal works without them.
    """
    if type(client) is Delegate:
        raise UsageError("wrap_openai got a client that is wrapped already; give it the client itself")
    if (policy is None) == (controller is None):
        raise UsageError("wrap_openai needs either policy (a bundle) or controller, and not both")
    if controller is not None and journal is not None:
        raise UsageError("wrap_openai(journal) needs policy; give the controller its own journal")
    if policy is not None:
        controller = _from_bundle(client, policy, journal, logprobs)
    assert controller is not None, "one of the two is given"
    return _wrapped(client, controller, logprobs)


def _from_bundle(
    client: Any, policy: "Bundle | Path | str", journal: Journal | None, logprobs: bool
) -> Controller:
    from heedful.protocol.bundle import Bundle, read_bundle

    bundle = policy if isinstance(policy, Bundle) else read_bundle(Path(policy))
    named = {"model": bundle.model.settings.model}
    model = _model(client, named, NOTHING_ASKED, logprobs)
    return Controller.from_bundle(bundle, model=model, journal=journal)


def _wrapped(client: Client, controller: Controller, logprobs: bool) -> Client:
    completions = ControlledCompletions(client=client, controller=controller, logprobs=logprobs)
    inner: Any = client
    create = completions.create_async if is_async(inner.chat.completions.create) else completions.create
    chat = Delegate(inner.chat, {"completions": Delegate(inner.chat.completions, {"create": create})})

    def copied(*args: Any, **options: Any) -> Any:
        return _wrapped(inner.with_options(*args, **options), controller, logprobs)

    return cast(Client, Delegate(client, {"chat": chat, "with_options": copied, "copy": copied}))


class Delegate:
    """An object with some attributes replaced; all others, and its class, are those of the original."""

    def __init__(self, original: object, replaced: Mapping[str, object]) -> None:
        self._original = original
        self._replaced = replaced

    def __getattr__(self, name: str) -> Any:
        return self._replaced[name] if name in self._replaced else getattr(self._original, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._original)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        cast(Any, self._original).close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await cast(Any, self._original).close()


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledCompletions:
    """`chat.completions.create` through the control loop."""

    client: Any
    controller: Controller
    logprobs: bool

    def create(self, **request: Any) -> Any:
        """The response of the chosen pass, with the note `heedful`."""
        asked = self._asked(request)
        if isinstance(asked, Untouched):
            return _noted(
                self.client.chat.completions.create(**request), ResponseNote(untouched=asked.reason)
            )
        model = _model(self.client, request, asked, self.logprobs)
        outcome = run_sync(replace(self.controller, model=model).answer(asked.task))
        return _response(model, outcome, HeldStream)

    async def create_async(self, **request: Any) -> Any:
        """The same for an async client."""
        asked = self._asked(request)
        if isinstance(asked, Untouched):
            response = await self.client.chat.completions.create(**request)
            return _noted(response, ResponseNote(untouched=asked.reason))
        model = _model(self.client, request, asked, self.logprobs)
        outcome = await replace(self.controller, model=model).answer(asked.task)
        return _response(model, outcome, HeldAsyncStream)

    def _asked(self, request: dict[str, Any]) -> ChatTask | Untouched:
        if "messages" in request:
            request["messages"] = list(request["messages"])  # an iterator can be read only once
        return chat_task(request, self.controller.template)


def _model(client: Any, request: Mapping[str, Any], asked: ChatTask, logprobs: bool) -> ClientModel:
    return ClientModel(
        create=client.chat.completions.create,
        base_url=str(client.base_url).rstrip("/"),
        request=request,
        asked=asked,
        logprobs=logprobs,
    )


def _response(model: ClientModel, outcome: Outcome, stream: type[HeldStream] | type[HeldAsyncStream]) -> Any:
    note = ResponseNote(decision=outcome.decision, outcome=outcome)
    raw = model.reply_with(outcome.decode)
    if model.request.get("logprobs") is not True:
        without_logprobs(raw)
    return stream(raw, note) if isinstance(raw, list) else _noted(raw, note)


def _noted(response: Any, note: ResponseNote) -> Any:
    """The response with its note, which is not one of its fields: a dump does not contain it."""
    object.__setattr__(response, "heedful", note)
    return response
