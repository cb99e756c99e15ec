"""A dashboard over made-up decisions, without a server and with one."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.testclient import TestClient

from heedful import Database, SqliteFeedback, SqliteJournal, SqliteStore
from heedful.dashboard.routes import dashboard_routes
from heedful.dashboard.view import DashboardView, LockedPolicy, Viewer
from tests.dashboard.made_up import NOW, POLICY, fill

ANA = Viewer(name="ana", admin=True)


def view_of(database: Database, *, viewer: Viewer = ANA, locked: LockedPolicy | None = None) -> DashboardView:
    def recognised(request: Request) -> Viewer:
        return viewer

    return DashboardView(
        store=SqliteStore(database),
        journal=SqliteJournal(database),
        feedback=SqliteFeedback(database),
        viewer=recognised,
        locked=lambda: locked,
        secret=b"secret",
        clock=lambda: NOW,
    )


def app_of(view: DashboardView) -> Starlette:
    return Starlette(routes=dashboard_routes(view))


def client_of(view: DashboardView) -> TestClient:
    return TestClient(app_of(view), base_url="http://dashboard.test")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A store with 400 decisions of one day."""
    fill(tmp_path / "made-up.db", 400)
    with closing(Database(tmp_path / "made-up.db")) as database:
        yield database


@pytest.fixture
def client(database: Database) -> TestClient:
    return client_of(view_of(database))


LOCKED = LockedPolicy(
    policy=POLICY,
    study="desk",
    lock="0123456789abcdef",
    locked_at="2026-09-01 12:00:00 UTC",
    model="made-up-1b",
    entries={"notes": 6},
)


@contextmanager
def served(view: DashboardView) -> Iterator[str]:
    """The URL of the dashboard on a free port of this machine."""
    server = uvicorn.Server(uvicorn.Config(app_of(view), port=0, log_level="warning"))
    started = threading.Event()
    startup: Callable[..., object] = server.startup

    async def announce(sockets: object = None) -> None:
        await startup(sockets=sockets)  # type: ignore[misc]
        started.set()

    server.startup = announce  # type: ignore[method-assign]
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    assert started.wait(30), "the server started"
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(30)
