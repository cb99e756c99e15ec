"""A large bank as columns: per entry its row of the vector file and who may see it, but no text."""

import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from heedful.memory.vector_file import Places
from heedful.types import Audience

BATCH = 4096
"""Entries that are read together."""
SAMPLED = 64
"""Versions that are compared with the store when saved columns are read."""
_NEWEST = "e.seq = (SELECT max(seq) FROM entries WHERE bank = e.bank AND id = e.id)"
_LIVE = """e.purged IS NULL AND coalesce((SELECT state FROM states WHERE bank = e.bank AND id = e.id
ORDER BY seq DESC LIMIT 1), 'active') IN ('active', 'protected')"""
_FRESH = f"""
SELECT e.seq, e.digest, e.text, e.scope, e.valid_from, e.valid_until, e.purged,
       {_NEWEST} AS newest, {_LIVE} AS live
FROM entries e WHERE e.bank = ? AND e.seq > ? ORDER BY e.seq LIMIT {BATCH}
"""
_CHANGED = f"""
SELECT e.seq, {_NEWEST} AND {_LIVE} AS live FROM entries e WHERE e.bank = :bank AND e.seq <= :entries
AND e.id IN (SELECT id FROM entries WHERE bank = :bank AND seq > :entries
             UNION SELECT id FROM states WHERE bank = :bank AND seq > :states)
"""
Query = Callable[[str, tuple[Any, ...] | dict[str, Any]], list[sqlite3.Row]]
"""Runs one statement on the store; between two of them others may use it."""
PlacesOf = Callable[[Sequence[str]], Places]
"""The rows of texts in the vector file; missing ones are embedded."""
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class BankColumns:
    """One position per entry version, in the order of the store; versions replaced since are not live."""

    generation: str
    """Of the vector file that `places` refers to."""
    entries_seen: int
    states_seen: int
    """The last rows of the store's two tables that are included."""
    scopes: tuple[str, ...]
    """The different scopes, as JSON."""
    seqs: NDArray[np.int64]
    versions: NDArray[np.uint64]
    """The first 8 bytes of each digest."""
    places: Places
    scope_numbers: NDArray[np.int32]
    valid_from: NDArray[np.float64]
    valid_until: NDArray[np.float64]
    live: Bools

    def visible(self, audience: Audience, positions: NDArray[np.int64] | slice = slice(None)) -> Bools:
        """Which of the positions are live and seen by the audience."""
        allowed = [json.loads(scope).items() <= audience.scope.items() for scope in self.scopes]
        scoped = np.array(allowed, np.bool_)[self.scope_numbers[positions]]
        started = self.valid_from[positions] <= audience.at
        ended = self.valid_until[positions] <= audience.at
        return np.asarray(self.live[positions] & scoped & started & ~ended)


ARRAYS = {
    "seqs": np.int64,
    "versions": np.uint64,
    "places": np.int64,
    "scope_numbers": np.int32,
    "valid_from": np.float64,
    "valid_until": np.float64,
    "live": np.bool_,
}


def empty_columns(generation: str) -> BankColumns:
    arrays: dict[str, Any] = {name: np.zeros(0, kind) for name, kind in ARRAYS.items()}
    return BankColumns(generation=generation, entries_seen=0, states_seen=0, scopes=(), **arrays)


def follow(columns: BankColumns, query: Query, bank: str, places_of: PlacesOf) -> BankColumns:
    """The columns with every change that the store made since."""
    # Read before the entries: a state that is set meanwhile is applied again next time.
    [(states,)] = query("SELECT coalesce(max(seq), 0) FROM states WHERE bank = ?", (bank,))
    if columns.entries_seen:
        columns = _with_changes(columns, query, bank)
    parts = [columns]
    numbers = {scope: number for number, scope in enumerate(columns.scopes)}
    while rows := query(_FRESH, (bank, parts[-1].entries_seen)):
        parts.append(_part(rows, numbers, places_of))
    if len(parts) == 1 and states == columns.states_seen:
        return columns
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in ARRAYS
    }
    return replace(
        columns, **joined, entries_seen=parts[-1].entries_seen, states_seen=states, scopes=tuple(numbers)
    )


def _with_changes(columns: BankColumns, query: Query, bank: str) -> BankColumns:
    since = {"bank": bank, "entries": columns.entries_seen, "states": columns.states_seen}
    changed = query(_CHANGED, since)
    if not changed or not len(columns.seqs):
        return columns
    seqs, live = np.array([tuple(row) for row in changed], np.int64).T
    at = np.searchsorted(columns.seqs, seqs)
    known = (at < len(columns.seqs)) & (columns.seqs[np.minimum(at, len(columns.seqs) - 1)] == seqs)
    new = columns.live.copy()
    new[at[known]] = live[known].astype(np.bool_)
    return replace(columns, live=new)


def _part(rows: Sequence[sqlite3.Row], numbers: dict[str, int], places_of: PlacesOf) -> BankColumns:
    """The columns of newly read rows; `numbers` gets their scopes."""
    kept = [row for row in rows if row["newest"] and row["purged"] is None]
    since = [-np.inf if row["valid_from"] is None else row["valid_from"] for row in kept]
    until = [np.inf if row["valid_until"] is None else row["valid_until"] for row in kept]
    scopes = [numbers.setdefault(row["scope"], len(numbers)) for row in kept]
    return BankColumns(
        generation="",
        entries_seen=rows[-1]["seq"],
        states_seen=0,
        scopes=(),
        seqs=np.array([row["seq"] for row in kept], np.int64),
        versions=np.array([version_number(row["digest"]) for row in kept], np.uint64),
        places=places_of([row["text"] for row in kept]),
        scope_numbers=np.array(scopes, np.int32),
        valid_from=np.array(since, np.float64),
        valid_until=np.array(until, np.float64),
        live=np.array([row["live"] for row in kept], np.bool_),
    )


def version_number(digest: str) -> int:
    return int(digest[:16], 16)


def save_columns(columns: BankColumns, file: Path) -> None:
    """Write the columns, all or nothing."""
    values: dict[str, Any] = {part.name: np.asarray(getattr(columns, part.name)) for part in fields(columns)}
    part = file.with_name(f"{file.name}.{id(columns)}.part.npz")
    np.savez(part, **values)
    part.replace(file)


def load_columns(file: Path) -> BankColumns | None:
    """The saved columns; None if they are missing or damaged."""
    try:
        with open(file, "rb") as content, np.load(content) as saved:
            return BankColumns(
                generation=str(saved["generation"]),
                entries_seen=int(saved["entries_seen"]),
                states_seen=int(saved["states_seen"]),
                scopes=tuple(map(str, saved["scopes"])),
                **{name: saved[name] for name in ARRAYS},
            )
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None


def belongs(columns: BankColumns, query: Query, bank: str) -> bool:
    """Whether a sample of the columns agrees with the store, which may have been replaced."""
    count = len(columns.seqs)
    sample = (
        np.unique(np.linspace(0, count - 1, SAMPLED).astype(np.int64)) if count else np.zeros(0, np.int64)
    )
    for position in sample:
        seq = int(columns.seqs[position])
        rows = query("SELECT digest FROM entries WHERE bank = ? AND seq = ?", (bank, seq))
        if not rows or version_number(rows[0]["digest"]) != columns.versions[position]:
            return False
    return True


def kept_text(file: Path, key: str, make: Callable[[], str]) -> str:
    """A text that takes long to make, from a file if it was made under the same key."""
    with suppress(OSError, UnicodeDecodeError, ValueError):
        known, text = file.read_text(encoding="utf-8").split("\n")
        if known == key:
            return text
    text = make()
    with suppress(OSError):
        part = file.with_name(f"{file.name}.{os.getpid()}.part")
        part.write_text(f"{key}\n{text}", encoding="utf-8")
        part.replace(file)
    return text
