"""Edits of a bank: repaired and corrupted entries, from a file or generated."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from heedful.errors import UsageError
from heedful.governance.damage import corrupted
from heedful.protocol.table import Table
from heedful.protocol.workspace import read_json_lines
from heedful.types import Entry


class EditLine(msgspec.Struct, forbid_unknown_fields=True):
    """An edit in a file: an entry's id and its new texts."""

    entry: str
    repair: str = ""
    """Empty: unchanged."""
    corrupt: str = ""
    """Empty: the repair, damaged by heedful."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """The repaired and the corrupted version of an entry."""

    repair: Entry
    corrupt: Entry


def read_edits(file: Path, entries: Sequence[Entry], seed: int) -> dict[str, Edit]:
    """The edits of a JSONL file; in an exemplar, the worked answer is edited."""
    known = {entry.id: entry for entry in entries}
    edits: dict[str, Edit] = {}
    for number, read in read_json_lines(file, EditLine, "an edit"):
        if read.entry not in known:
            raise UsageError(f"{file} line {number} edits {read.entry!r}, which is not in the bank")
        entry = known[read.entry]
        repair = _saying(entry, read.repair) if read.repair else entry
        corrupt = _saying(entry, read.corrupt) if read.corrupt else corrupted(repair, seed)
        edits[entry.id] = Edit(repair=repair, corrupt=corrupt)
    if not edits:
        raise UsageError(f"{file} contains no edits")
    return edits


def made_edits(table: Table, source: str, entries: Sequence[Entry], count: int, seed: int) -> dict[str, Edit]:
    """Generated damage for the entries recalled most; their repair is their current text."""
    recalls = Counter(recall.entry for row in table.column(source).passes for recall in row.recalls)
    edits: dict[str, Edit] = {}
    for entry in sorted(entries, key=lambda entry: (-recalls[entry.id], entry.id)):
        if len(edits) == count or not recalls[entry.id]:
            break
        try:
            edits[entry.id] = Edit(repair=entry, corrupt=corrupted(entry, seed))
        except UsageError:
            continue
    if not edits:
        raise UsageError(f"no entry that {source} recalled can be damaged; give --edits FILE")
    return edits


def _saying(entry: Entry, text: str) -> Entry:
    return replace(entry, response=text) if entry.kind == "exemplar" else replace(entry, text=text)
