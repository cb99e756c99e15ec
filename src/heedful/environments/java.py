"""Environments that run in a Java process of their own."""

import os
import shutil
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from heedful.errors import HeedfulError, MissingError, WorldError

INSTALL_JAVA = "apt-get install -y default-jre-headless"


def require_java() -> None:
    """Raise `MissingError` with the line that installs Java if there is none."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and Path(home, "bin", "java").exists()):
        raise MissingError(f"Java is missing; install it (Debian: {INSTALL_JAVA}) and run the command again")


@contextmanager
def java_faults(name: str) -> Iterator[None]:
    """Turn a failure of the Java side into a `WorldError`.

    The gateway raises its own errors, those of sockets, and `AttributeError` after its process died.
    """
    try:
        yield
    except HeedfulError:
        raise
    except Exception as error:  # third-party code may raise anything
        first_line = next(iter(str(error).splitlines()), "")[:200]
        raise WorldError(f"{name} failed: {type(error).__name__}: {first_line}") from error


def defer_collection(world: Any) -> None:
    """Release Java objects in `tend` only.

    The gateway releases a Java object when Python collects it, in whatever thread that happens, and waits
    for the answer: a process that hangs would stop the event loop.
    """
    client = world._gateway._gateway_client
    release, waiting = client.garbage_collect_object, deque[str]()
    client.garbage_collect_object = waiting.append
    world.heedful_garbage = (release, waiting)


def tend(world: Any, name: str) -> None:
    """Raise `WorldError` if the Java process of a world has ended, and release collected Java objects."""
    release, waiting = world.heedful_garbage
    with java_faults(name):
        require_alive(world, name)
        while waiting:
            release(waiting.popleft())


def require_alive(world: Any, name: str) -> None:
    """Raise `WorldError` if the Java process of a world has ended."""
    if (code := world._gateway.java_process.poll()) is not None:
        raise WorldError(f"{name} failed: its Java process ended with {code}")


def end_java(world: Any) -> None:
    """End the Java process of a world and its gateway, also while another thread waits for an answer."""
    gateway = world._gateway
    process = gateway.java_process
    # first, or a step in progress and collected Java objects would open connections to the dead process
    gateway._gateway_client.is_connected = False
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    gateway._gateway_client.close()
    gateway.shutdown_callback_server()
    for leftover, end in (("_obj_tree_tempdir", "cleanup"), ("_obj_tree_tempfile", "close")):
        if hasattr(world, leftover):
            getattr(getattr(world, leftover), end)()
    world.close = _nothing  # its finalizer calls this, and would write to the dead process


def _nothing() -> None:
    """Replaces the closing of a world that has ended."""
