"""Optional packages: the extra that installs each, and the error when one is missing."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from heedful.errors import MissingError

EXTRAS = {
    "agents": ("scienceworld", "textworld-express"),
    "embedded": ("xllamacpp", "tokenizers", "safetensors"),
    "index": ("usearch",),
    "postgres": ("psycopg", "psycopg-binary", "psycopg-pool"),
    "ray": ("grpcio", "ray"),
    "serve": ("starlette", "uvicorn", "httptools", *(() if sys.platform == "win32" else ("uvloop",))),
    "study": ("scipy", "matplotlib", "scikit-learn"),
    "telemetry": ("opentelemetry-api",),
}
IMPORTED_AS = {
    "grpcio": "grpc",
    "opentelemetry-api": "opentelemetry",
    "psycopg-binary": "psycopg_binary",
    "psycopg-pool": "psycopg_pool",
    "scikit-learn": "sklearn",
    "textworld-express": "textworld_express",
}
"""Packages whose import name differs from their name."""


def absent(extra: str) -> list[str]:
    """The packages of an extra that are not installed."""
    return [package for package in EXTRAS[extra] if find_spec(IMPORTED_AS.get(package, package)) is None]


def pip_line(*extras: str) -> str:
    """The command that installs these extras."""
    return f"pip install 'heedful[{','.join(extras)}]'"


def require(*extras: str, instead: str = "") -> None:
    """Raise `MissingError` unless these extras are installed; `instead` names an alternative."""
    missing = [extra for extra in extras if absent(extra)]
    if missing:
        packages = ", ".join(package for extra in missing for package in absent(extra))
        alternative = f" ({instead})" if instead else ""
        raise MissingError(f"not installed: {packages}; run: {pip_line(*missing)}{alternative}")


@contextmanager
def importing(extra: str) -> Iterator[None]:
    """Import packages of an extra in this block; if one is missing, the error names the pip command."""
    try:
        yield
    except ModuleNotFoundError:
        require(extra)
        raise
