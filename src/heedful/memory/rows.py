"""Rows of a store as values, and the rules of a bank that do not depend on the database."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from heedful.errors import UsageError
from heedful.types import Entry, Evidence, Grounds, Mark, StateChange

IMPORT = "import"
"""Who changed the state of an entry that came into the bank with it."""
ENTRY_COLUMNS = (
    *("at", "bank", "id", "digest", "kind", "text", "response", "tags", "source"),
    *("scope", "valid_from", "valid_until"),
)
STATE_COLUMNS = ("at", "bank", "id", "state", "reason", "actor", "grounds")
EVIDENCE_COLUMNS = ("at", "bank", "entry", "version", "task", "utility", "decision")


class Row(Protocol):
    """A row by column name, as every driver gives it."""

    def __getitem__(self, column: str, /) -> Any: ...


def entry_of(row: Row) -> Entry:
    """The entry in a row of `entries` with its state and reason."""
    return Entry(
        id=row["id"],
        kind=row["kind"],
        text=row["text"],
        response=row["response"],
        tags=tuple(json.loads(row["tags"])),
        source=row["source"],
        state=row["state"],
        reason=row["reason"],
        scope=json.loads(row["scope"]),
        valid_from=row["valid_from"],
        valid_until=row["valid_until"],
    )


def entry_values(bank: str, entry: Entry) -> tuple[object, ...]:
    """The values of `ENTRY_COLUMNS`."""
    tags = json.dumps(list(entry.tags), ensure_ascii=False)
    scope = json.dumps(dict(entry.scope), ensure_ascii=False)
    return (
        *(time.time(), bank, entry.id, entry.digest),
        *(entry.kind, entry.text, entry.response, tags, entry.source),
        *(scope, entry.valid_from, entry.valid_until),
    )


def state_values(bank: str, mark: Mark) -> tuple[object, ...]:
    """The values of `STATE_COLUMNS`."""
    grounds = None if mark.grounds is None else asdict(mark.grounds)
    return (time.time(), bank, mark.entry, mark.state, mark.reason, mark.by, json.dumps(grounds))


def evidence_values(bank: str, evidence: Sequence[Evidence]) -> list[tuple[object, ...]]:
    """The values of `EVIDENCE_COLUMNS`; a utility outside [-1, 1] is refused."""
    for seen in evidence:
        if not isinstance(seen.utility, int | float) or not -1 <= seen.utility <= 1:
            raise UsageError(
                f"evidence about entry {seen.entry!r}: a utility must be between -1 and 1, "
                f"not {seen.utility!r}"
            )
    return [(time.time(), bank, e.entry, e.version, e.task, e.utility, e.decision) for e in evidence]


def change_of(row: Row) -> StateChange:
    grounds = json.loads(row["grounds"])
    return StateChange(
        at=row["at"],
        entry=row["id"],
        before=row["before"],
        state=row["state"],
        reason=row["reason"],
        by=row["actor"],
        grounds=None if grounds is None else Grounds(**grounds),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PutStep:
    """A version to append, and the state that its entry brings along."""

    entry: Entry
    mark: Mark | None


def put_steps(known: Mapping[str, Entry], entries: Sequence[Entry]) -> Iterator[PutStep]:
    """The new versions among the given entries; an entry that is not active brings its state only once."""
    current = dict(known)
    for entry in entries:
        before = current.get(entry.id)
        if before is None or before.digest != entry.digest:
            state = Mark(entry=entry.id, state=entry.state, reason=entry.reason, by=IMPORT)
            yield PutStep(entry=entry, mark=state if before is None and entry.state != "active" else None)
        current[entry.id] = entry


def change_to_log(known: Entry, mark: Mark) -> Mark | None:
    """The mark with the entry's full id; None if it changes nothing."""
    if mark.state in ("quarantined", "retired") and known.state == "protected":
        raise UsageError(f"entry {known.id!r} is protected; run heedful bank restore {known.id} first")
    if mark.state == known.state and mark.reason in ("", known.reason):
        return None
    return replace(mark, entry=known.id)


def only_match(bank: str, wanted: str, matches: Sequence[Entry]) -> Entry:
    """The single entry that an id or id prefix matches."""
    if len(matches) == 1:
        return matches[0]
    several = ", ".join(entry.id for entry in matches[:5])
    problem = f"{wanted!r} matches {several}" if matches else f"no entry {wanted!r}"
    raise UsageError(f"bank {bank!r}: {problem}; heedful bank ls --bank {bank} lists its entries")


def version_of(bank: str, entry: str, digest: str, versions: Sequence[Entry]) -> Entry:
    """The version with this digest."""
    for known in versions:
        if known.digest == digest:
            return known
    raise UsageError(f"bank {bank!r} has no version {digest[:12]} of entry {entry!r}")
