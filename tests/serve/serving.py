"""A server on loopback, in a thread of this process, in front of a scripted upstream."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import uvicorn
from starlette.routing import BaseRoute

from heedful import ChatModel, Controller, Database, MemorySource, SqliteStore, arms, new_entry
from heedful.memory.storage import Storage
from heedful.ports import Bank
from heedful.serve.admission import Admission, ServeLimits
from heedful.serve.app import make_app
from heedful.serve.batched_journal import BatchedJournal
from heedful.serve.callers import Callers
from heedful.serve.serve_metrics import ServeMetrics
from heedful.serve.served_policies import PolicyShelf, ServedPolicy
from heedful.serve.server import Address, listen
from heedful.serve.service import Service
from heedful.serve.upstream import upstream_of
from heedful.types import Entry, Policy
from tests.making import FixedBank

NOTE = new_entry("The desk opens at 7 am.", kind="fact", id="desk")
GATE = arms.gate("memory", threshold=-0.3)
"""Consults memory if the mean log-prob is below -0.3, and accepts what it says."""


@dataclass(frozen=True)
class Answer:
    """A reply of the server."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.json["choices"][0]["message"]["content"]


@dataclass(frozen=True)
class Client:
    """A plain HTTP client of a server."""

    port: int
    service: Service
    stop: Callable[[], None]
    """Begin a graceful stop."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            return read(connection.getresponse())
        finally:
            connection.close()

    def post(self, path: str, value: object, **headers: str) -> Answer:
        return self.send("POST", path, json.dumps(value).encode(), **headers)

    @contextmanager
    def opened(self, question: str, **fields: Any) -> Iterator[HTTPResponse]:
        """A reply that is still to be read; the connection closes with the block."""
        connection = self.asking(question, **fields)
        try:
            yield connection.getresponse()
        finally:
            connection.close()

    def asking(self, question: str, **fields: Any) -> HTTPConnection:
        """A connection with a request that is not answered yet."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        body = {"model": "m", "messages": [{"role": "user", "content": question}], **fields}
        connection.request("POST", "/v1/chat/completions", json.dumps(body).encode())
        return connection

    def ask(self, question: str = "When does the desk open?", headers: Any = None, **fields: Any) -> Answer:
        messages = [{"role": "user", "content": question}]
        body = {"model": "m", "messages": messages, **fields}
        return self.post("/v1/chat/completions", body, **(headers or {}))


def read(response: HTTPResponse) -> Answer:
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, response.read())


def make_service(
    url: str,
    folder: Path,
    policy: Policy = GATE,
    *,
    entries: tuple[Entry, ...] = (NOTE,),
    limits: ServeLimits = ServeLimits(),
    callers: Callers = Callers(),
    served: Callable[[Controller], list[ServedPolicy]] | None = None,
    store: Storage | None = None,
    bank: Bank | None = None,
    timeout: float = 10.0,
    **settings: Any,
) -> Service:
    store = store or SqliteStore(Database(folder / "heedful.db"))
    journal = BatchedJournal(store.journal, seconds=settings.pop("batch", 0.01))
    controller = Controller(
        model=ChatModel(base_url=url),
        policy=policy,
        sources={"memory": MemorySource(bank=bank or FixedBank(entries))},
        journal=journal,
    )
    policies = [ServedPolicy(name="default", controller=controller, banks=("fixed",))]
    policies = policies if served is None else served(controller)
    return Service(
        upstream=upstream_of(controller.model, concurrency=limits.at_once, timeout=timeout),
        shelf=PolicyShelf(lambda: policies, policies),
        store=store,
        journal=journal,
        feedback=store.feedback,
        callers=callers,
        admission=Admission(limits, keyless=callers.keys is None),
        metrics=ServeMetrics(),
        **settings,
    )


@contextmanager
def serving(service: Service, pages: Sequence[BaseRoute] = ()) -> Iterator[Client]:
    """The service on a free port until the block ends, and then a graceful stop."""
    listening = listen(Address(host="127.0.0.1", port=0))
    started = threading.Event()

    class Started(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            started.set()

    server = Started(uvicorn.Config(make_app(service, pages), log_config=None, lifespan="on"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
    thread.start()
    assert started.wait(20)

    def stop() -> None:
        server.should_exit = True

    try:
        yield Client(listening.getsockname()[1], service, stop)
    finally:
        stop()
        thread.join()
        listening.close()


def renamed(policy: ServedPolicy, name: str, **changes: Any) -> ServedPolicy:
    return replace(policy, name=name, **changes)
