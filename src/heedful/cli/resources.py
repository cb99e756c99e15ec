"""Open the model, store and bank that a command uses."""

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.cli.output import progress, say
from heedful.cli.progress import ProgressLines, Show, shown_progress
from heedful.errors import HeedfulError, UsageError
from heedful.extras import absent, require
from heedful.memory.storage import IN_MEMORY, Storage, default_place, exists, open_storage
from heedful.memory.stored import INDEX_ABOVE, StoredBank
from heedful.models.catalogue import CATALOGUE
from heedful.models.schemes import ModelOptions, make_model
from heedful.ports import Model
from heedful.types import DEFAULT_THRESHOLD

if TYPE_CHECKING:
    from heedful.memory.embed import MiniLM


MINILM = "all-minilm-l6-v2"
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


def open_known_store(place: str | None) -> Storage:
    """The store for a command that adds nothing to it: no file is created.

    A named file must exist; if there is no default store yet, an empty one in memory stands for it.
    """
    if place is not None and not exists(place):
        raise UsageError(f"there is no store {place}: correct --store; heedful bank import FILE creates one")
    return open_storage(place if place is not None or exists(default_place()) else IN_MEMORY)


def open_bank(store: Storage, name: str, method: str, threshold: float) -> StoredBank:
    """A bank whose vectors are cached in the store; MiniLM is pulled when recall first needs it."""
    if method in ("dense", "bm25_rerank") and name in asyncio.run(store.banks()):
        require("embedded", instead="--recall bm25 needs no extra")
    lines = ProgressLines()
    cache = store.vector_cache(partial(_show_vectors, lines.show))
    return StoredBank(
        *(store, name),
        method=method,
        threshold=threshold,
        embedder=open_minilm,
        cache=cache,
        index_above=index_above(),
        build_index=False,  # a command ends before an index is built; import builds it
    )


def embed_now(store: Storage, bank: str) -> None:
    """Embed a bank's new entries with progress, so that the first question need not wait for them.

    Weights are not downloaded for it: the first recall by meaning does that.
    """
    from heedful.models import weights

    if absent("embedded") or weights.status(MINILM).state != "present":
        return
    try:
        with shown_progress() as show:
            if not _index_now(store, bank, show):
                _embed_texts(store, bank, show)
    except HeedfulError as error:
        say(f"heedful: the entries are stored, but not embedded yet: {error}")


def _embed_texts(store: Storage, bank: str, show: Show) -> None:
    cache = store.vector_cache(partial(_show_vectors, show))
    texts = [entry.text for entry in asyncio.run(store.entries(bank)) if entry.live]
    if cache.missing(texts) >= FEW_VECTORS:
        cache.vectors(texts, open_minilm())


def _index_now(store: Storage, bank: str, show: Show) -> bool:
    """Embed and index a large bank; False if it is not large."""
    from heedful.memory.large import LargeBank
    from heedful.models.embedded import usable_cores

    large = store.open_large(
        bank,
        threshold=DEFAULT_THRESHOLD,
        embedder=open_minilm,
        above=index_above(),
        on_progress=partial(_show_vectors, show),
    )
    if isinstance(large, LargeBank) and large.due:
        large.extend(threads=usable_cores(), on_progress=partial(_show_indexed, show))
    return large is not None


def index_above() -> int:
    """The size above which a bank has an index: HEEDFUL_INDEX_ABOVE, or 50,000 entries."""
    given = os.environ.get("HEEDFUL_INDEX_ABOVE", str(INDEX_ABOVE))
    if not given.isdigit():
        raise UsageError(f"HEEDFUL_INDEX_ABOVE is {given!r}; set it to a number of entries such as 50000")
    return int(given)


def _show_indexed(show: Show, done: int, total: int) -> None:
    show("indexing", done, total, lambda: f"{done} of {total} entries")


def _show_vectors(show: Show, done: int, total: int) -> None:
    if total >= FEW_VECTORS:
        show("embedding", done, total, lambda: f"{done} of {total} entries")


def open_minilm() -> "MiniLM":
    from heedful.memory.embed import MiniLM
    from heedful.models.embedded import usable_cores

    return MiniLM(pull_weights(MINILM), threads=usable_cores())


def require_bank(store: Storage, name: str) -> None:
    """Raise `UsageError` for an unknown bank, with the names of the existing banks."""
    banks = asyncio.run(store.banks())
    if name not in banks:
        known = f"existing banks: {', '.join(banks)}" if banks else "there are no banks yet"
        raise UsageError(f"unknown bank {name!r}; {known}; heedful bank import FILE --bank {name} creates it")
