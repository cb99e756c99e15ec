"""Optional packages: which extra brings them, and what to say when they are not installed."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from heedful.errors import MissingError

EXTRAS = {
    "embedded": ("xllamacpp", "tokenizers", "safetensors"),
    "study": ("scipy", "matplotlib"),
}


def absent(extra: str) -> list[str]:
    """The packages of an extra that are not installed."""
    return [package for package in EXTRAS[extra] if find_spec(package) is None]


def pip_line(*extras: str) -> str:
    """The command that installs these extras."""
    return f"pip install 'heedful[{','.join(extras)}]'"


def require(*extras: str, instead: str = "") -> None:
    """Refuse to go on without these extras; `instead` names what works without them."""
    wanting = [extra for extra in extras if absent(extra)]
    if wanting:
        packages = ", ".join(package for extra in wanting for package in absent(extra))
        otherwise = f" ({instead})" if instead else ""
        raise MissingError(f"not installed: {packages}; run: {pip_line(*wanting)}{otherwise}")


@contextmanager
def importing(extra: str) -> Iterator[None]:
    """Imports inside this block come from an extra: one that fails names the pip line."""
    try:
        yield
    except ModuleNotFoundError:
        require(extra)
        raise
