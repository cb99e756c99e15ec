"""A cache of entry vectors between runs; it can be deleted at any time."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from heedful.memory.database import Database
from heedful.memory.index import Embedder, Floats

MODEL = "all-minilm-l6-v2"


@dataclass(frozen=True, slots=True)
class VectorCache:
    """Embeds each text once and stores its vector under the text's digest."""

    database: Database

    def vectors(self, texts: Sequence[str], embedder: Embedder) -> Floats:
        keys = [sha256(text.encode()).hexdigest() for text in texts]
        known = self._read()
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            fresh = dict(zip(missing, embedder.embed(list(missing.values())), strict=True))
            self._write(fresh)
            known |= fresh
        return np.stack([known[key] for key in keys])

    def _read(self) -> dict[str, Floats]:
        with self.database.reading() as connection:
            rows = connection.execute("SELECT text, vector FROM vectors WHERE model = ?", (MODEL,)).fetchall()
        return {row["text"]: np.frombuffer(row["vector"], dtype=np.float32) for row in rows}

    def _write(self, fresh: dict[str, Floats]) -> None:
        rows = [(MODEL, key, vector.astype(np.float32).tobytes()) for key, vector in fresh.items()]
        with self.database.writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
