"""A model in a Ray actor, on whichever node of a cluster has room."""

import asyncio
import os
import socket
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from heedful.errors import ModelError, UsageError, WorkersError
from heedful.extras import importing
from heedful.models.remote import MakeModel, RemoteDecoder, Reply, opened
from heedful.types import Decode, Prompt, Traits

LOCAL = "ray://local"
"""Starts a cluster of one node in this machine."""
CLIENT_PORT = 10001
SECONDS_TO_REACH = 5.0
SESSION_ATTEMPTS = 3


class RayModel:
    """Decodes in an actor; one that is lost fails its decodes, and the next decode starts another."""

    def __init__(self, make: MakeModel, traits: Traits, *, capacity: int, cpus: float) -> None:
        """`make` runs in the actor and must be picklable; `cpus` are reserved for it."""
        self.traits = traits
        self._make = make
        self._capacity = capacity
        self._cpus = cpus
        self._actor: Any = None

    async def decode(self, prompt: Prompt) -> Decode:
        with importing("ray"):
            from ray.exceptions import RayError
        actor = self._actor
        try:
            if actor is None:
                actor = self._actor = self._start()
            reply = await _arrival(actor.reply.remote(prompt).future())
        except (RayError, ConnectionError) as error:  # the latter from a cluster behind ray://
            if self._actor is actor:
                self._actor = None
            raise ModelError(f"the Ray actor is lost: {_first_line(error)}") from error
        return opened(reply)

    async def aclose(self) -> None:
        """End the actor; the next decode starts another."""
        with importing("ray"):
            import ray
        actor, self._actor = self._actor, None
        if actor is not None and ray.is_initialized():
            with suppress(ConnectionError):  # the cluster is gone, and the actor with it
                ray.kill(actor)

    def _start(self) -> Any:
        with importing("ray"):
            import ray
        if not ray.is_initialized():  # or Ray would start a cluster of its own
            raise ConnectionError("the connection to the cluster is closed")
        options: dict[str, Any] = {
            "num_cpus": self._cpus,
            "max_concurrency": self._capacity,
            "scheduling_strategy": "SPREAD",
        }
        return ray.remote(RemoteDecoder).options(**options).remote(self._make)


async def _arrival(reply: Future[Reply]) -> Reply:
    """Wait for a reply, but never cancel it: Ray's client fails on a cancelled one when it disconnects."""
    loop, arrived = asyncio.get_running_loop(), asyncio.Event()

    def announce(_: Future[Reply]) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(arrived.set)

    reply.add_done_callback(announce)
    await arrived.wait()
    return reply.result()


def connect(address: str) -> int:
    """Connect to a cluster, unless this process is connected to one; the number of its nodes."""
    if address != LOCAL and _has_token():
        os.environ.setdefault("RAY_AUTH_MODE", "token")  # read when Ray is imported
    with importing("ray"):
        import ray
    if not ray.is_initialized():
        _check_reachable(address)
        try:
            insist(lambda: _init(address))
        except ConnectionError as error:
            raise WorkersError(_no_session(address, error)) from error
        except Exception as error:  # Ray raises plain exceptions too, when a node does not start in time
            raise WorkersError(f"cannot connect to {address}: {_first_line(error)}") from error
    return sum(1 for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU"))


def insist(start: Callable[[], None]) -> None:
    """Start a session; one that a busy head node did not start in time is asked for again."""
    for _ in range(SESSION_ATTEMPTS - 1):
        with suppress(ConnectionError):
            return start()
    return start()


def _init(address: str) -> None:
    with importing("ray"):
        import ray
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == LOCAL:
        ray.init(include_dashboard=False, **quiet)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what goes wrong becomes an error
        ray.init(address, **quiet)


def _has_token() -> bool:
    """Whether Ray has a token here: its head node then asks clients for one, which they send only if told."""
    named = any(os.environ.get(name) for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"))
    return named or (Path.home() / ".ray" / "auth_token").exists()


def _check_reachable(address: str) -> None:
    """Refuse an address where nothing listens: Ray itself would try it for half a minute."""
    if address == LOCAL:
        return
    try:
        host, port = _host_and_port(address)
        socket.create_connection((host, port), SECONDS_TO_REACH).close()
    except ValueError as error:
        raise UsageError(f"{address} is not ray://HOST:PORT; the port is usually {CLIENT_PORT}") from error
    except OSError as error:
        raise WorkersError(
            f"nothing answers at {address} ({error.strerror or error}); start the cluster there with "
            f"ray start --head --ray-client-server-port {port}, or correct the address"
        ) from error


def _host_and_port(address: str) -> tuple[str, int]:
    parts = urlsplit(address)
    if not parts.hostname or not parts.port:
        raise ValueError(address)
    return parts.hostname, parts.port


def _no_session(address: str, error: Exception) -> str:
    """Ray forks a process on the head node for each client and waits 30 seconds for it; on a busy node the
    wait is too short, and the fork support of gRPC breaks some of these processes."""
    return (
        f"the cluster at {address} started no session for this client in {SESSION_ATTEMPTS} attempts "
        f"({_reason(error)}); if it asks for a token, set RAY_AUTH_TOKEN to that of its head node; if the "
        "node is busy, run the command again, or start the node with GRPC_ENABLE_FORK_SUPPORT=0 "
        "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S=120 ray start --head"
    )


def _reason(error: Exception) -> str:
    """The last line: the client's error ends with the traceback of the head node."""
    return str(error).strip().rpartition("\n")[2]


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(":")
