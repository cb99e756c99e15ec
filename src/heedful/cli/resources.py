"""Open the model, store and bank that a command uses."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.cli.output import progress, say
from heedful.errors import UsageError
from heedful.extras import require
from heedful.memory import SqliteStore
from heedful.memory.database import Database
from heedful.memory.stored import StoredBank
from heedful.models.catalogue import CATALOGUE
from heedful.models.schemes import ModelOptions, make_model
from heedful.ports import Model

if TYPE_CHECKING:
    from heedful.memory.embed import MiniLM


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


def open_store(path: Path | None) -> SqliteStore:
    return SqliteStore(Database(path))


def open_bank(store: SqliteStore, name: str, method: str, threshold: float) -> StoredBank:
    """A bank whose vectors are cached in the store; MiniLM is pulled when recall first needs it."""
    from heedful.memory.vectors import VectorCache

    if method in ("dense", "bm25_rerank") and name in asyncio.run(store.banks()):
        require("embedded", instead="--recall bm25 needs no extra")
    cache = VectorCache(store.database)
    return StoredBank(store, name, method=method, threshold=threshold, embedder=open_minilm, cache=cache)


def open_minilm() -> "MiniLM":
    from heedful.memory.embed import MiniLM

    return MiniLM(pull_weights("all-minilm-l6-v2"))


def require_bank(store: SqliteStore, name: str) -> None:
    """Raise `UsageError` for an unknown bank, with the names of the existing banks."""
    banks = asyncio.run(store.banks())
    if name not in banks:
        known = f"existing banks: {', '.join(banks)}" if banks else "there are no banks yet"
        raise UsageError(f"unknown bank {name!r}; {known}; heedful bank import FILE --bank {name} creates it")
