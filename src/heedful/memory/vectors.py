"""A cache of entry vectors between runs; it can be deleted at any time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from heedful.errors import StoreError
from heedful.memory.database import Database
from heedful.memory.index import Embedder, Floats

MODEL = "all-minilm-l6-v2"
BATCH = 512
"""Texts that are embedded and stored together: an interrupted run loses at most these."""
OnVectors = Callable[[int, int], None]
"""Reports how many of the missing vectors are done."""


@dataclass(frozen=True, slots=True)
class VectorCache:
    """Embeds each text once and stores its vector under the text's digest."""

    database: Database
    on_progress: OnVectors | None = None

    def vectors(self, texts: Sequence[str], embedder: Embedder) -> Floats:
        keys = [sha256(text.encode()).hexdigest() for text in texts]
        known = self._read()
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        known |= self._embed(missing, embedder)
        return np.stack([known[key] for key in keys])

    def missing(self, texts: Sequence[str]) -> int:
        """How many of the texts have no vector yet."""
        return len({sha256(text.encode()).hexdigest() for text in texts} - self._read().keys())

    def _embed(self, missing: dict[str, str], embedder: Embedder) -> dict[str, Floats]:
        """The missing vectors, texts of similar length together; they need not be stored to be used."""
        keys = sorted(missing, key=lambda key: len(missing[key]))
        vectors: dict[str, Floats] = {}
        writable = True
        for start in range(0, len(keys), BATCH):
            part = keys[start : start + BATCH]
            fresh = dict(zip(part, embedder.embed([missing[key] for key in part]), strict=True))
            writable = writable and self._write(fresh)
            vectors |= fresh
            if self.on_progress is not None:
                self.on_progress(len(vectors), len(keys))
        return vectors

    def _read(self) -> dict[str, Floats]:
        with self.database.reading() as connection:
            rows = connection.execute("SELECT text, vector FROM vectors WHERE model = ?", (MODEL,)).fetchall()
        return {row["text"]: np.frombuffer(row["vector"], dtype=np.float32) for row in rows}

    def _write(self, fresh: dict[str, Floats]) -> bool:
        """Whether the vectors could be stored."""
        rows = [(MODEL, key, vector.astype(np.float32).tobytes()) for key, vector in fresh.items()]
        try:
            with self.database.writing() as connection:
                connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
        except StoreError:
            return False
        return True
