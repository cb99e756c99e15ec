"""Digests of the passes of a side, to check that they are still those that were locked."""

from collections.abc import Mapping
from typing import Any

from heedful.protocol.ledger import Ledger, Pass, row_fields
from heedful.records import PassRecord
from heedful.types import Side, digest_of

_NOTHING = PassRecord(source="", prompt="", model="", status="nothing")
_EMPTY = row_fields(Pass(side="fit", seed=0, task="", record=_NOTHING))


def passes_digest(ledger: Ledger, side: Side) -> str:
    """A digest of every field of every pass of a side, independent of the order of recording."""
    return digest_of([_filled(row) for row in side_rows(ledger, side)])


def has_fit_passes(digests: Mapping[str, str], ledger: Ledger) -> bool:
    """Whether a ledger's fit side matches the digests of a lock."""
    locked = digests.get("fit passes")
    if locked == passes_digest(ledger, "fit"):
        return True
    # locks of the first published results: a digest of some fields only
    rows = side_rows(ledger, "fit")
    return locked == digest_of(
        [[*row.key, row.record.prompt, row.record.text, row.right, dict(row.record.signals)] for row in rows]
    )


def side_rows(ledger: Ledger, side: Side) -> list[Pass]:
    return sorted((row for row in ledger.passes.values() if row.side == side), key=lambda row: row.key)


def _filled(row: Pass) -> dict[str, Any]:
    """A row's fields without the empty ones, so a field added later does not change old digests."""
    return {name: value for name, value in row_fields(row).items() if value != _EMPTY.get(name)}
