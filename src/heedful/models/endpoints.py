"""What is known of each endpoint, written down once so that commands need not find out again."""

import json
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from heedful.models.chat_request import OPTIONAL_FIELDS


def endpoints_file() -> Path:
    """In HEEDFUL_HOME, or in the platform's data folder."""
    if home := os.environ.get("HEEDFUL_HOME"):
        return Path(home).expanduser() / "endpoints.json"
    from platformdirs import user_data_path

    return user_data_path("heedful", appauthor=False) / "endpoints.json"


def is_known(url: str, model: str) -> bool:
    """Whether the fields that an endpoint rejects have been written down."""
    return _key(url, model) in _read()


def known_rejects(url: str, model: str) -> frozenset[str]:
    """The optional request fields that an endpoint is known to reject."""
    noted = _read().get(_key(url, model))
    names = noted.get("rejects") if isinstance(noted, dict) else None
    return OPTIONAL_FIELDS & set(names) if isinstance(names, list) else frozenset()


def note_rejects(url: str, model: str, rejects: Collection[str]) -> None:
    """Write down what an endpoint rejects; a file that cannot be written costs nobody an answer."""
    _write({**_read(), _key(url, model): {"rejects": sorted(rejects)}})


def _write(noted: Mapping[str, Any]) -> None:
    file = endpoints_file()
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(noted, indent=1) + "\n", encoding="utf-8")
        part.replace(file)


def forget_rejects(url: str, model: str) -> None:
    """Let the next command find out again what an endpoint rejects."""
    _write({key: noted for key, noted in _read().items() if key != _key(url, model)})


def _key(url: str, model: str) -> str:
    return f"{url.rstrip('/')} {model}".rstrip()


def _read() -> dict[str, Any]:
    try:
        noted = json.loads(endpoints_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}
