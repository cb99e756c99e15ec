"""Digests of what was recorded on a side: whether passes are still those that were locked."""

from collections.abc import Mapping
from typing import Any

from heedful.protocol.ledger import Ledger, Pass, row_fields
from heedful.records import PassRecord
from heedful.types import Side, digest_of

_NOTHING = PassRecord(source="", prompt="", model="", status="nothing")
_EMPTY = row_fields(Pass(side="fit", seed=0, task="", record=_NOTHING))


def passes_digest(ledger: Ledger, side: Side) -> str:
    """A digest of what was recorded on a side, every field of it, whatever the order of recording."""
    return digest_of([_said(row) for row in side_rows(ledger, side)])


def has_fit_passes(digests: Mapping[str, str], ledger: Ledger) -> bool:
    """Whether a ledger's fit side is that of the lock with these digests."""
    locked = digests.get("fit passes")
    if locked == passes_digest(ledger, "fit"):
        return True
    # the digest of locks made before every field was in it, as in the first published results
    rows = side_rows(ledger, "fit")
    return locked == digest_of(
        [[*row.key, row.record.prompt, row.record.text, row.right, dict(row.record.signals)] for row in rows]
    )


def side_rows(ledger: Ledger, side: Side) -> list[Pass]:
    return sorted((row for row in ledger.passes.values() if row.side == side), key=lambda row: row.key)


def _said(row: Pass) -> dict[str, Any]:
    """A row's fields but for those that are empty, so that a field added later leaves old digests alone."""
    return {name: value for name, value in row_fields(row).items() if value != _EMPTY.get(name)}
