"""The ledger: one row per pass, append-only; every policy is computed from it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from heedful.protocol.line_file import LineFile, read_lines
from heedful.records import PassRecord
from heedful.types import Side, digest_of

Key = tuple[Side, int, str, str]
"""Side, seed, source, task."""
LATER_FIELDS = ("tool_calls", "finish", "error", "signal_costs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A row: its key, the record of the pass, and its grade; it holds no question text."""

    side: Side
    seed: int
    task: str
    record: PassRecord
    right: bool = False

    @property
    def key(self) -> Key:
        return (self.side, self.seed, self.record.source, self.task)


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A line of the ledger that cannot be trusted."""

    line: int
    problem: str


class Ledger:
    """A file of passes; only one process at a time may append."""

    def __init__(self, path: Path, parent: "Ledger | None" = None) -> None:
        """`parent` is a ledger whose passes need not be decoded again."""
        self.path = path
        self.passes: dict[Key, Pass] = {}
        """The newest pass of each key."""
        self._parent = parent
        self._ever: dict[tuple[Key, str, str], Pass] = {}
        self.damage: list[Damage] = []
        self._file = LineFile(path)
        for number, line in enumerate(read_lines(path), start=1):
            if line:
                self._take(number, line)

    def _take(self, number: int, line: bytes) -> None:
        try:
            row = read_row(line)
        except ValueError as error:
            self.damage.append(Damage(line=number, problem=str(error)))
            return
        self._keep(row)

    def _keep(self, row: Pass) -> None:
        self.passes[row.key] = row
        self._ever[row.key, row.record.prompt, row.record.model] = row

    def find(self, wanted: Pass) -> Pass | None:
        """The pass with this key, prompt and model, even if another prompt was recorded since."""
        known = self._ever.get((wanted.key, wanted.record.prompt, wanted.record.model))
        return known if known is not None or self._parent is None else self._parent.find(wanted)

    def __enter__(self) -> Self:
        self._file.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.__exit__(kind, error, trace)

    def append(self, row: Pass) -> None:
        """Write a row; it survives a crash of the process at once, and a power cut after a second."""
        self._file.append(written_row(row))
        self._keep(row)

    def of(self, side: Side, source: str) -> Iterator[Pass]:
        """The passes of a source on a side."""
        return (row for row in self.passes.values() if row.side == side and row.record.source == source)

    def distinct(self) -> Iterator[Pass]:
        """Every decoded pass, including those of an earlier prompt or model."""
        return iter(self._ever.values())


def written_row(row: Pass) -> bytes:
    """A row as a line of JSON with a checksum of its fields."""
    fields = row_fields(row)
    return (json.dumps({**fields, "sum": _sum(fields)}, ensure_ascii=False) + "\n").encode()


def row_fields(row: Pass) -> dict[str, Any]:
    """A row as one flat object; fields added later are left out if empty."""
    record: dict[str, Any] = msgspec.to_builtins(row.record)
    usage = record.pop("usage")
    for name in LATER_FIELDS:
        if not record[name]:
            del record[name]
    key = {"side": row.side, "seed": row.seed, "task": row.task, "right": row.right}
    return {**key, **record, **usage}


def read_row(line: bytes) -> Pass:
    """The row of a line; raises `ValueError` for a truncated or changed line."""
    try:
        fields: dict[str, Any] = json.loads(line)
        total = fields.pop("sum")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ValueError("the row is truncated or not JSON") from error
    if total != _sum(fields):
        raise ValueError("the row does not match its checksum")
    return msgspec.convert({**fields, "record": {**fields, "usage": fields}}, Pass)


def _sum(fields: dict[str, Any]) -> str:
    return digest_of(fields)[:12]
