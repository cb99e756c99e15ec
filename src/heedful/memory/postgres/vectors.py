"""Vectors of texts in Postgres: every server embeds only what none has embedded before."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heedful.memory.index import Embedder, Floats
from heedful.memory.postgres.database import PostgresDatabase
from heedful.memory.postgres.driver import Connection
from heedful.memory.postgres.store import insert
from heedful.memory.vectors import MODEL, OnVectors, embed_missing, key_of

READ_TOGETHER = 4096
_READ = "SELECT text, vector FROM vectors WHERE model = %s AND text = ANY(%s)"
_WRITE = f"{insert('vectors', ('model', 'text', 'vector'))} ON CONFLICT DO NOTHING"


@dataclass(frozen=True, slots=True)
class PostgresVectors:
    """Embeds each text once and stores its vector under the text's digest; for code in a thread."""

    database: PostgresDatabase
    on_progress: OnVectors | None = None

    def vectors(self, texts: Sequence[str], embedder: Embedder) -> Floats:
        keys = [key_of(text) for text in texts]
        known = self.stored(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        known |= embed_missing(missing, embedder, self._keep, self.on_progress)
        return np.stack([known[key] for key in keys])

    def missing(self, texts: Sequence[str]) -> int:
        """How many of the texts have no vector yet."""
        keys = list({key_of(text) for text in texts})
        return len(keys) - len(self.stored(keys))

    def stored(self, keys: Sequence[bytes]) -> dict[bytes, Floats]:
        """The vectors that are stored, by key."""

        async def read(connection: Connection) -> dict[bytes, Floats]:
            known: dict[bytes, Floats] = {}
            for start in range(0, len(keys), READ_TOGETHER):
                part = list(keys[start : start + READ_TOGETHER])
                rows = await connection.execute(_READ, (MODEL, part), binary=True)
                known |= {row["text"]: read_vector(row["vector"]) for row in await rows.fetchall()}
            return known

        return self.database.run(self.database.read(read))

    def _keep(self, keys: Sequence[bytes], fresh: Floats) -> None:
        rows = [(MODEL, key, write_vector(vector)) for key, vector in zip(keys, fresh, strict=True)]

        async def write(connection: Connection) -> None:
            await connection.cursor().executemany(_WRITE.encode(), rows)

        self.database.run(self.database.write(write))


def write_vector(vector: Floats) -> str:
    """A vector as pgvector reads it; nine digits identify every float32."""
    return f"[{','.join(f'{number:.9g}' for number in vector.tolist())}]"


def read_vector(sent: bytes) -> Floats:
    """A vector as pgvector sends it: two short numbers, then big-endian float32."""
    return np.frombuffer(sent, dtype=">f4", offset=4).astype(np.float32)
