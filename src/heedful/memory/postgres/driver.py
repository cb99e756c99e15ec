"""The driver of Postgres, from the extra `postgres`."""

from typing import TypeAlias

from heedful.extras import importing

with importing("postgres"):
    import psycopg
    import psycopg_pool

Connection: TypeAlias = "psycopg.AsyncConnection[psycopg.rows.DictRow]"
Pool: TypeAlias = "psycopg_pool.AsyncConnectionPool[Connection]"

__all__ = ["Connection", "Pool", "psycopg", "psycopg_pool"]
