"""Fixtures that several tests share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from heedful import Database, EmbeddedModel, SqliteStore
from heedful.memory.postgres.database import PostgresDatabase
from heedful.memory.postgres.store import PostgresStore
from heedful.models import weights
from tests.postgres_server import PostgresServer, running_postgres

settings.register_profile("heedful", deadline=None)
settings.load_profile("heedful")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What uses the embedded model is marked `engine` and runs in one process, as does what uses Postgres
    or Ray; slow tests start first."""
    for item in items:
        if "engine" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.engine)
        if item.get_closest_marker("engine"):
            item.add_marker(pytest.mark.xdist_group("engine"))
        if "postgres_server" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("postgres"))
        if item.path.name == "test_ray_actor.py":
            item.add_marker(pytest.mark.xdist_group("ray"))
        if item.get_closest_marker("slow"):  # simulations run the same lines for minutes
            item.add_marker(pytest.mark.no_cover)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    database = Database(tmp_path / "heedful.db")
    yield SqliteStore(database)
    database.close()


@pytest.fixture(scope="session")
def engine() -> EmbeddedModel:
    """The embedded model, downloaded once and loaded once."""
    weights.pull("smollm2-135m")
    return EmbeddedModel()


@pytest.fixture(scope="session")
def minilm() -> Path:
    return weights.pull("all-minilm-l6-v2")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of its own, while weights stay in the cache they were pulled to."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith("HEEDFUL_")]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A real Postgres for all tests that need one."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[PostgresStore]:
    """A store in a database of its own."""
    database = PostgresDatabase(postgres_url)
    yield PostgresStore(database)
    database.close()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """An empty database of its own."""
    return postgres_server.new_database()
