"""Create entries and convert them to JSON fields."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import get_args

from heedful.errors import UsageError
from heedful.limits import refuse_choice, refuse_text
from heedful.types import Entry, Kind

SHORT_ID, LONG_ID = 10, 32
"""Digits of the digest in an id, and in the id of an entry whose short id is taken."""
LATEST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


def new_entry(
    text: str,
    *,
    kind: Kind,
    response: str = "",
    tags: Sequence[str] = (),
    source: str = "",
    id: str = "",
    scope: Mapping[str, str] | None = None,
    valid_from: float | None = None,
    valid_until: float | None = None,
) -> Entry:
    """Create an entry; the default id is a prefix of its content's digest."""
    named = {"text": text, "response": response, "source": source, "id": id}
    for name, value in named.items():
        refuse_text(f"the entry's {name}", value)
    refuse_choice("the entry's kind", kind, get_args(Kind))
    if isinstance(tags, str) or not all(isinstance(tag, str) for tag in tags):
        raise UsageError(f"the entry's tags are {tags!r}; give a list of texts")
    if not text.strip():
        raise UsageError("the text is empty")
    if kind == "exemplar" and not response.strip():
        raise UsageError("an exemplar needs a response, the worked answer")
    if valid_from is not None and valid_until is not None and valid_until <= valid_from:
        raise UsageError("valid_until is not after valid_from, so the entry is never valid")
    entry = Entry(
        id=id,
        kind=kind,
        text=text,
        response=response,
        tags=tuple(tags),
        source=source,
        scope=dict(scope or {}),
        valid_from=None if valid_from is None else round(valid_from, 3),
        valid_until=None if valid_until is None else round(valid_until, 3),
    )
    return entry if id else replace(entry, id=entry.digest[:SHORT_ID])


def has_own_id(entry: Entry) -> bool:
    """Whether the id comes from this very content, so that other content is another entry."""
    return len(entry.id) >= SHORT_ID and entry.digest.startswith(entry.id)


def distinct_ids(known: Mapping[str, Entry], entries: Sequence[Entry]) -> list[Entry]:
    """The entries, with a longer id where a short one already belongs to other content.

    Among a million entries, two share a short id with a chance of about one third.
    """
    current, distinct = dict(known), []
    for entry in entries:
        before = current.get(entry.id)
        if before is not None and has_own_id(before) and has_own_id(entry) and before.digest != entry.digest:
            entry = replace(entry, id=entry.digest[:LONG_ID])
        current[entry.id] = entry
        distinct.append(entry)
    return distinct


def entry_fields(entry: Entry) -> dict[str, object]:
    """An entry as JSON fields, with its digest."""
    return {
        "id": entry.id,
        "kind": entry.kind,
        "text": entry.text,
        "response": entry.response,
        "tags": list(entry.tags),
        "source": entry.source,
        "state": entry.state,
        "reason": entry.reason,
        "scope": dict(entry.scope),
        "valid_from": _moment(entry.valid_from),
        "valid_until": _moment(entry.valid_until),
        "digest": entry.digest,
    }


def refuse_bank_name(name: object) -> None:
    """Raise `UsageError` unless a bank can have this name: printable text without spaces around it."""
    if not isinstance(name, str) or not name.isprintable() or name != name.strip() or not name:
        raise UsageError(f"a bank cannot be named {name!r}; use one line of text without spaces around it")


def read_moment(text: str | float | None) -> float | None:
    """A time in seconds since 1970, from such a number or from an ISO date (UTC unless it names a zone)."""
    if text is None or text == "":
        return None
    try:
        moment = float(text) if isinstance(text, int | float) else datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is not a time; write it as 2026-01-31 or 2026-01-31T12:00") from error
    if isinstance(moment, datetime):
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not 0 <= moment < LATEST:
        raise UsageError(f"{text!r} is not a time; write it as 2026-01-31 or 2026-01-31T12:00")
    return moment


def read_scope(pairs: Sequence[str]) -> dict[str, str]:
    """A scope from texts such as `user=ana`."""
    scope = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            raise UsageError(f"{pair!r} is not a scope; write it as KEY=VALUE, for example user=ana")
        scope[key] = value
    return scope


def _moment(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat()
