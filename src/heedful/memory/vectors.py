"""A cache of entry vectors between runs; it can be deleted at any time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import numpy as np

from heedful.errors import StoreError
from heedful.memory.database import Database
from heedful.memory.index import Embedder, Floats
from heedful.memory.vector_file import MISSING, Places, VectorFile

MODEL = "all-minilm-l6-v2"
BATCH = 512
"""Texts that are embedded and stored together: an interrupted run loses at most these."""
IN_MEMORY = Path(":memory:")
"""SQLite's name for a database without a file."""
OnVectors = Callable[[int, int], None]
"""Reports how many of the missing vectors are done."""


def vector_file(database: Database) -> VectorFile | None:
    """The vectors beside a store; None for a store without a file."""
    path = database.path
    return None if path == IN_MEMORY else VectorFile(path.with_name(f"{path.name}-vectors"), MODEL)


def key_of(text: str) -> bytes:
    return sha256(text.encode()).digest()


def forget_vectors(database: Database, texts: Sequence[str]) -> None:
    """Delete the vectors of purged texts."""
    file = vector_file(database)
    if file is not None:
        file.forget([key_of(text) for text in texts])


@dataclass(frozen=True, slots=True)
class VectorCache:
    """Embeds each text once and stores its vector under the text's digest."""

    database: Database
    on_progress: OnVectors | None = None
    file: VectorFile | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "file", vector_file(self.database))

    def vectors(self, texts: Sequence[str], embedder: Embedder) -> Floats:
        keys = [key_of(text) for text in texts]
        known = self._read(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        known |= self._embed(missing, embedder)
        return np.stack([known[key] for key in keys])

    def places(self, texts: Sequence[str], embedder: Embedder) -> Places:
        """The texts' rows in the file; missing ones are embedded and must be storable."""
        assert self.file is not None, "a store without a file has no rows"
        keys = [key_of(text) for text in texts]
        places = self.file.places(keys)
        if missing := {keys[at]: texts[at] for at in np.flatnonzero(places == MISSING).tolist()}:
            self._embed(missing, embedder)
            places = self.file.places(keys)
        if (places == MISSING).any():
            raise StoreError(f"the vectors in {self.file.folder} cannot be written; check its permissions")
        return places

    def missing(self, texts: Sequence[str]) -> int:
        """How many of the texts have no vector yet."""
        keys = list({key_of(text) for text in texts})
        return len(keys) - len(self._read(keys))

    def _embed(self, missing: dict[bytes, str], embedder: Embedder) -> dict[bytes, Floats]:
        """The missing vectors; they need not be stored to be used."""
        writable = True

        def keep(keys: Sequence[bytes], fresh: Floats) -> None:
            nonlocal writable
            writable = writable and self._write(keys, fresh)

        return embed_missing(missing, embedder, keep, self.on_progress)

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, Floats]:
        """The stored vectors; none if the file cannot be used."""
        if self.file is None:
            return {}
        try:
            places, rows = self.file.places(keys), self.file.rows()
        except StoreError:
            return {}
        return {key: rows[place] for key, place in zip(keys, places, strict=True) if place != MISSING}

    def _write(self, keys: Sequence[bytes], fresh: Floats) -> bool:
        """Whether the vectors could be stored."""
        if self.file is None:
            return False
        try:
            self.file.append(keys, fresh)
        except StoreError:
            return False
        return True


def embed_missing(
    missing: dict[bytes, str],
    embedder: Embedder,
    keep: Callable[[Sequence[bytes], Floats], None],
    on_progress: OnVectors | None,
) -> dict[bytes, Floats]:
    """The vectors of texts by key, texts of similar length together; each batch is kept when it is ready."""
    keys = sorted(missing, key=lambda key: len(missing[key]))
    vectors: dict[bytes, Floats] = {}
    for start in range(0, len(keys), BATCH):
        part = keys[start : start + BATCH]
        fresh = embedder.embed([missing[key] for key in part])
        keep(part, fresh)
        vectors |= dict(zip(part, fresh, strict=True))
        if on_progress is not None:
            on_progress(len(vectors), len(keys))
    return vectors
