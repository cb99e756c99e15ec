"""A large bank in Postgres: pgvector finds candidates, and their similarity is computed exactly."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache as cache_result
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from heedful.errors import StoreError
from heedful.memory.bank import minilm
from heedful.memory.index import Embedder, Floats
from heedful.memory.postgres.database import PostgresDatabase
from heedful.memory.postgres.driver import Connection
from heedful.memory.postgres.schema import DIMENSIONS
from heedful.memory.postgres.store import CURRENT, bank_digest, rows_of, scope_key
from heedful.memory.postgres.vectors import PostgresVectors, read_vector, write_vector
from heedful.memory.rows import entry_of
from heedful.memory.vectors import BATCH, OnVectors, key_of
from heedful.types import Audience, Entry, Recall

Rows: TypeAlias = Sequence[dict[str, Any]]
CANDIDATES = 32
"""Read from the index for each recall, or twice the limit if that is more."""
MOST_SCOPE_KEYS = 6
"""With more keys than this, scopes are compared as JSON instead of listed."""
ROUNDING = 1e-5
"""Two sums of the same products may differ by less than this."""
_LIVE = "h.state IN ('active', 'protected') AND NOT h.purged"
_CANDIDATES = f"""
WITH near AS (
    SELECT h.seq, h.state, h.reason, h.vector FROM heads h
    WHERE h.bank = %(bank)s AND h.vector IS NOT NULL AND {_LIVE} AND {{scope}}
      AND (h.valid_from IS NULL OR h.valid_from <= %(at)s)
      AND (h.valid_until IS NULL OR h.valid_until > %(at)s)
    ORDER BY {{distance}} LIMIT %(limit)s
) SELECT e.*, near.state, near.reason, near.vector FROM near JOIN entries e USING (seq)
"""
_NEAR = "h.vector <#> %(vector)s::vector"
_EXACT = f"({_NEAR}) + 0"
"""An order that no index has, so that every visible entry is compared."""
_UNEMBEDDED = f"""
SELECT h.id, h.seq, e.text FROM heads h JOIN entries e USING (seq)
WHERE h.bank = %s AND h.vector IS NULL AND {_LIVE} ORDER BY h.seq LIMIT {BATCH}
"""
_EMBED = "UPDATE heads SET vector = %s::vector WHERE bank = %s AND id = %s AND seq = %s"


class PostgresBank:
    """Recalls from Postgres; a state counts from the moment it is stored, in every server."""

    def __init__(
        self, database: PostgresDatabase, name: str, *, threshold: float, embedder: Callable[[], Embedder]
    ) -> None:
        self.name = name
        self.stale = True
        """Whether entries may lack a vector."""
        self._database = database
        self._threshold = threshold
        self._embedder = cache_result(embedder)
        self._digest = ""

    @property
    def digest(self) -> str:
        """As of the last time that the bank followed its store."""
        return self._digest

    def entries(self) -> Sequence[Entry]:
        query = f"{CURRENT} ORDER BY h.place"
        rows = self._run(lambda connection: rows_of(connection, query, (self.name,)))
        return [entry_of(row) for row in rows]

    @property
    def waits(self) -> bool:
        """Whether `build` has work to do."""
        return self.stale

    async def build(self) -> None:
        await asyncio.to_thread(self.follow)

    def follow(self, on_progress: OnVectors | None = None) -> None:
        """Embed the entries that have no vector, and learn the digest."""
        self.stale = False
        counted = f"SELECT count(*) AS n FROM heads h WHERE h.bank = %s AND h.vector IS NULL AND {_LIVE}"
        total = self._run(lambda c: rows_of(c, counted, (self.name,)))[0]["n"] if on_progress else 0
        done = 0
        while rows := self._run(lambda connection: rows_of(connection, _UNEMBEDDED, (self.name,))):
            self._embed(rows)
            done += len(rows)
            if on_progress is not None:
                on_progress(min(done, total), total)
        self._digest = self._run(lambda connection: bank_digest(connection, self.name))

    async def recall(self, query: str, *, limit: int, audience: Audience | None = None) -> list[Recall]:
        """The best entries that the audience sees, as the store has them now."""
        vector = (await asyncio.to_thread(lambda: self._embedder().embed([query])))[0]
        audience = audience or Audience(at=time.time())
        return await self._database.read_soon(
            lambda connection: self._recall(connection, vector, limit, audience)
        )

    async def _recall(
        self, connection: Connection, vector: Floats, limit: int, audience: Audience
    ) -> list[Recall]:
        width = max(CANDIDATES, 2 * limit)
        while True:
            rows, scores = await self._ranked(connection, vector, width, audience)
            reach = scores >= self._threshold
            edge = np.sort(scores[reach])[-limit] if reach.sum() > limit else None
            if edge is None or len(rows) < width or scores.min() < edge - ROUNDING:
                break
            width *= 4  # more entries are as near as the last one
        recalls = [
            Recall(entry=entry_of(row), score=float(score))
            for row, score, reaches in zip(rows, scores, reach, strict=True)
            if reaches
        ]
        return sorted(recalls, key=lambda recall: (-recall.score, recall.entry.id))[:limit]

    async def _ranked(
        self, connection: Connection, vector: Floats, width: int, audience: Audience
    ) -> tuple[Rows, Floats]:
        """The nearest visible entries; all of them if the index found too few that reach the threshold."""
        rows, scores = await self._nearest(connection, vector, width, audience, _NEAR)
        if len(rows) < width and not (len(rows) and scores.min() < self._threshold):
            return await self._nearest(connection, vector, width, audience, _EXACT)
        return rows, scores

    async def _nearest(
        self, connection: Connection, vector: Floats, width: int, audience: Audience, distance: str
    ) -> tuple[Rows, Floats]:
        listed = len(audience.scope) <= MOST_SCOPE_KEYS
        values = {
            "bank": self.name,
            "at": audience.at,
            "limit": width,
            "vector": write_vector(vector),
            "scope": list(_scopes(audience)) if listed else scope_key(audience.scope),
        }
        scope = "h.scope = ANY(%(scope)s)" if listed else "h.scope::jsonb <@ %(scope)s::jsonb"
        query = _CANDIDATES.format(scope=scope, distance=distance)
        rows = await (await connection.execute(query.encode(), values, binary=True)).fetchall()
        vectors = np.array([read_vector(row["vector"]) for row in rows]).reshape(-1, len(vector))
        return rows, np.asarray(vectors @ vector)

    def _embed(self, rows: Rows) -> None:
        """Give entries their vectors, from those of texts that were embedded when the bank was small."""
        texts = {key_of(row["text"]): row["text"] for row in rows}
        vectors = PostgresVectors(self._database).stored(list(texts))
        if missing := [key for key in texts if key not in vectors]:
            fresh = self._embedder().embed([texts[key] for key in missing])
            vectors |= dict(zip(missing, fresh, strict=True))
        width = len(next(iter(vectors.values())))
        if width != DIMENSIONS:
            raise StoreError(f"Postgres indexes vectors of {DIMENSIONS} numbers, but these have {width}")
        values = [
            (write_vector(vectors[key_of(row["text"])]), self.name, row["id"], row["seq"]) for row in rows
        ]

        async def write(connection: Connection) -> None:
            await connection.cursor().executemany(_EMBED, values)

        self._database.run(self._database.write(write))

    def _run(self, work: Callable[[Connection], Any]) -> Any:
        return self._database.run(self._database.read(work))


def _scopes(audience: Audience) -> Iterator[str]:
    """Every scope of an entry that the audience sees."""
    pairs = list(audience.scope.items())
    for size in range(len(pairs) + 1):
        yield from (scope_key(dict(chosen)) for chosen in combinations(pairs, size))


def open_large(
    database: PostgresDatabase,
    name: str,
    *,
    threshold: float,
    embedder: Callable[[], Embedder] | None,
    above: int,
    on_progress: OnVectors | None = None,
) -> PostgresBank | None:
    """The bank, if it has more than `above` entries; for code in a thread."""
    query = "SELECT count(*) AS n FROM (SELECT 1 FROM heads WHERE bank = %s LIMIT %s) AS found"
    rows = database.run(database.read(lambda c: rows_of(c, query, (name, above + 1))))
    if rows[0]["n"] <= above:
        return None
    bank = PostgresBank(database, name, threshold=threshold, embedder=embedder or minilm)
    try:
        bank.follow(on_progress)
    except StoreError as error:
        logging.getLogger("heedful").warning("bank %s is recalled from a snapshot: %s", name, error)
        return None
    return bank
