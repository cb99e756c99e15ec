"""Open the model, store and bank that a command uses."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.cli.output import progress, say
from heedful.cli.progress import ProgressLines, Show, shown_progress
from heedful.errors import HeedfulError, UsageError
from heedful.extras import absent, require
from heedful.memory import SqliteStore
from heedful.memory.database import WAIT_SECONDS, Database, default_path
from heedful.memory.stored import StoredBank
from heedful.models.catalogue import CATALOGUE
from heedful.models.schemes import ModelOptions, make_model
from heedful.ports import Model
from heedful.types import Entry

if TYPE_CHECKING:
    from heedful.memory.embed import MiniLM


MINILM = "all-minilm-l6-v2"
IN_MEMORY = Path(":memory:")
"""SQLite's name for a database without a file."""
FEW_VECTORS = 64
"""Fewer entries are embedded in less than a second, when they are first needed."""


def open_model(options: ModelOptions) -> Model:
    """The model at a URL, or the embedded one; missing weights are pulled."""
    if not options.url:
        require("embedded", instead="--url ENDPOINT needs no extra")
        if options.weights in CATALOGUE:
            pull_weights(options.weights)
    return make_model(options)


def pull_weights(name: str) -> Path:
    """The folder of the weights; missing weights are downloaded with a progress bar."""
    from heedful.models import weights

    require("embedded")
    if weights.status(name).state == "present":
        return weights.path(name)
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    if not progress().is_terminal:
        say(f"downloading the weights {name} ({CATALOGUE[name].size / 1e6:.0f} MB)")
    with Progress(*columns, console=progress()) as bars:
        rows = {
            file.name: bars.add_task(f"{name}: {file.name}", total=file.size)
            for file in CATALOGUE[name].files
        }
        return weights.pull(name, lambda p: bars.update(rows[p.file], completed=p.done))


def open_store(path: Path | None, *, wait: float = WAIT_SECONDS) -> SqliteStore:
    """The store; `wait` limits how long a write waits for another process, in seconds."""
    return SqliteStore(Database(path, wait=wait))


def open_known_store(path: Path | None) -> SqliteStore:
    """The store for a command that adds nothing to it: no file is created.

    A named file must exist; if there is no default store yet, an empty one in memory stands for it.
    """
    if path is not None and not path.exists():
        raise UsageError(f"there is no store {path}: correct --store; heedful bank import FILE creates one")
    return open_store(path if path is not None or default_path().exists() else IN_MEMORY)


def open_bank(store: SqliteStore, name: str, method: str, threshold: float) -> StoredBank:
    """A bank whose vectors are cached in the store; MiniLM is pulled when recall first needs it."""
    from heedful.memory.vectors import VectorCache

    if method in ("dense", "bm25_rerank") and name in asyncio.run(store.banks()):
        require("embedded", instead="--recall bm25 needs no extra")
    lines = ProgressLines()
    cache = VectorCache(store.database, partial(_show_vectors, lines.show))
    return StoredBank(store, name, method=method, threshold=threshold, embedder=open_minilm, cache=cache)


def embed_now(store: SqliteStore, entries: Sequence[Entry]) -> None:
    """Embed many new entries with progress, so that the first question need not wait for them.

    Weights are not downloaded for it: the first recall by meaning does that.
    """
    from heedful.models import weights

    if absent("embedded") or weights.status(MINILM).state != "present":
        return
    from heedful.memory.vectors import VectorCache

    texts = [entry.text for entry in entries if entry.live]
    if VectorCache(store.database).missing(texts) < FEW_VECTORS:
        return
    try:
        with shown_progress() as show:
            VectorCache(store.database, partial(_show_vectors, show)).vectors(texts, open_minilm())
    except HeedfulError as error:
        say(f"heedful: the entries are stored, but not embedded yet: {error}")


def _show_vectors(show: Show, done: int, total: int) -> None:
    if total >= FEW_VECTORS:
        show("embedding", done, total, lambda: f"{done} of {total} entries")


def open_minilm() -> "MiniLM":
    from heedful.memory.embed import MiniLM
    from heedful.models.embedded import usable_cores

    return MiniLM(pull_weights(MINILM), threads=usable_cores())


def require_bank(store: SqliteStore, name: str) -> None:
    """Raise `UsageError` for an unknown bank, with the names of the existing banks."""
    banks = asyncio.run(store.banks())
    if name not in banks:
        known = f"existing banks: {', '.join(banks)}" if banks else "there are no banks yet"
        raise UsageError(f"unknown bank {name!r}; {known}; heedful bank import FILE --bank {name} creates it")
