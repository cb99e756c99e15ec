"""heedful's own formats: JSON lines, which preserve entries completely, and plain text lists."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec

from heedful.errors import UsageError
from heedful.memory.entries import entry_fields, new_entry, read_moment
from heedful.mismatch import mismatch
from heedful.types import Entry, Kind, State

_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


class EntryLine(msgspec.Struct, forbid_unknown_fields=True):
    """An entry in a JSONL file; only the text is required."""

    text: str
    id: str = ""
    kind: Kind | None = None
    response: str = ""
    tags: list[str] = []
    source: str = ""
    state: State = "active"
    reason: str = ""
    scope: dict[str, str] = {}
    valid_from: str | float | None = None
    valid_until: str | float | None = None
    digest: str = ""


def read_jsonl(text: str, kind: Kind) -> Iterator[tuple[int, Entry | str]]:
    for number, line in _filled(text):
        try:
            yield number, _from_json(line, kind)
        except msgspec.MsgspecError as error:
            yield number, mismatch(error)
        except UsageError as error:
            yield number, str(error)


def write_jsonl(entries: Sequence[Entry], old: str) -> str:
    return "".join(f"{json.dumps(entry_fields(entry), ensure_ascii=False)}\n" for entry in entries)


def read_text(text: str, kind: Kind) -> Iterator[tuple[int, Entry | str]]:
    """One entry per line, with or without a bullet; `#` starts a comment."""
    for number, line in _filled(text):
        if not line.lstrip().startswith("#"):
            content = _BULLET.sub("", line).strip()
            yield number, new_entry(content, kind=kind) if content else "the text is empty"


def write_text(entries: Sequence[Entry], old: str) -> str:
    return "".join(f"- {' '.join(entry.text.split())}\n" for entry in entries)


def _filled(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip())


def _from_json(line: str, kind: Kind) -> Entry:
    read = msgspec.json.decode(line, type=EntryLine)
    entry = new_entry(
        read.text,
        kind=read.kind or ("exemplar" if read.response else kind),
        response=read.response,
        tags=read.tags,
        source=read.source,
        id=read.id,
        scope=read.scope,
        valid_from=read_moment(read.valid_from),
        valid_until=read_moment(read.valid_until),
    )
    if read.digest and read.digest != entry.digest:
        raise UsageError(f"the digest of {entry.id!r} does not match its content")
    return replace(entry, state=read.state, reason=read.reason)
