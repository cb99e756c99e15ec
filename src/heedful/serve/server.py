"""Run the application: the socket, signals, the ready file and a graceful stop."""

import asyncio
import gc
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import HeedfulError, UsageError
from heedful.extras import importing
from heedful.serve.app import ServerApp
from heedful.serve.gathered_writes import GatheringTransport
from heedful.serve.request_log import LOG
from heedful.serve.served_policies import ServedPolicy

Reload = Callable[[], Awaitable[Sequence[ServedPolicy]]]
GRACE_SECONDS = 30
"""Time for requests in progress after a signal to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the server listens; port 0 is any free port."""

    host: str
    port: int
    ready_file: Path | None = None


def listen(address: Address) -> socket.socket:
    """The socket that the server accepts requests on."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # with the protocol named, the event loop sends small replies without delay
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address.host, address.port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise UsageError(
            f"cannot listen on {address.host} port {address.port}: {error}; choose another --port"
        ) from error
    return listening


def run(
    app: ServerApp,
    reload: Reload,
    address: Address,
    listening: socket.socket,
    announce: Callable[[int], None],
) -> None:
    """Serve until a signal; `announce` gets the port once requests are accepted."""
    with importing("serve"):
        import uvicorn
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    class GatheringProtocol(HttpToolsProtocol):
        """Sends the head and the body of a reply together."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(GatheringTransport(transport, self.loop))  # type: ignore[arg-type]

    config = uvicorn.Config(
        app,
        http=GatheringProtocol,
        log_config=None,
        access_log=False,
        proxy_headers=False,  # heedful looks at no client's address
        lifespan="on",
        timeout_graceful_shutdown=GRACE_SECONDS,
    )

    class AnnouncedServer(uvicorn.Server):
        """Says when it accepts requests."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                _follow_hangups(reload)
                port = listening.getsockname()[1]
                _write_ready(address.ready_file, port)
                announce(port)

    _spare_collector()
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(AnnouncedServer(config).serve(sockets=[listening]))


def _spare_collector() -> None:
    """Leave everything that exists at the start out of garbage collections, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def _write_ready(file: Path | None, port: int) -> None:
    """Write the port in one step, so that nobody reads an empty file."""
    if file is not None:
        part = file.with_name(f"{file.name}.part")
        part.write_text(f"{port}\n")
        part.replace(file)


def _follow_hangups(reload: Reload) -> None:
    """Reload keys and policies on SIGHUP, where the platform has it."""

    async def try_reload() -> None:
        try:
            policies = await reload()
        except HeedfulError as error:
            LOG.error("reload failed, the old keys and policies stay: %s", error)
        else:
            LOG.info("reload", {"policies": [policy.name for policy in policies]})

    tasks: set[asyncio.Task[None]] = set()

    def begin() -> None:
        task = asyncio.get_running_loop().create_task(try_reload())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    with suppress(AttributeError, NotImplementedError, RuntimeError):  # not on Windows, nor in a thread
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, begin)
