"""Entries from and to files: JSON lines and plain text lists."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec

from heedful.errors import MalformedError, UsageError
from heedful.types import Entry, Kind, State, digest_of

Format = Literal["jsonl", "text"]
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


class EntryLine(msgspec.Struct, forbid_unknown_fields=True):
    """An entry as it stands in a JSONL file; only the text is needed."""

    text: str
    id: str = ""
    kind: Kind | None = None
    response: str = ""
    tags: list[str] = []
    source: str = ""
    state: State = "active"
    reason: str = ""
    digest: str = ""


def read_entries(
    file: Path, *, format: Format | None = None, kind: Kind = "rule", skip_bad: bool = False
) -> tuple[list[Entry], list[tuple[int, str]]]:
    """The entries of a file and the lines that could not be read, each with its number and what is wrong.

    A bad line refuses the whole file with `MalformedError` unless `skip_bad` is set.
    """
    entries: list[Entry] = []
    bad: list[tuple[int, str]] = []
    seen: dict[str, int] = {}
    for number, line in _lines(file):
        try:
            entry = _parse(line, format or format_of(file), kind, file.name)
            if entry is None:
                continue
            if entry.id in seen:
                raise ValueError(f"the same entry {entry.id!r} as on line {seen[entry.id]}")
        except (ValueError, msgspec.MsgspecError) as error:
            bad.append((number, str(error)))
            continue
        seen[entry.id] = number
        entries.append(entry)
    if bad and not skip_bad:
        shown = "; ".join(f"line {number}: {problem}" for number, problem in bad[:5])
        more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
        raise MalformedError(
            f"{file.name} was not imported: {shown}{more} (--skip-bad imports the rest)", tuple(bad)
        )
    return entries, bad


def format_of(file: Path) -> Format:
    return "jsonl" if file.suffix in (".jsonl", ".ndjson", ".json") else "text"


def write_entries(entries: Sequence[Entry], format: Format) -> Iterable[str]:
    """The lines of a file that `read_entries` reads back; a text list keeps texts only."""
    for entry in entries:
        yield entry_json(entry) if format == "jsonl" else f"- {' '.join(entry.text.split())}"


def entry_json(entry: Entry) -> str:
    return json.dumps(entry_fields(entry), ensure_ascii=False)


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
        "digest": entry.digest,
    }


def new_entry(
    text: str, *, kind: Kind, response: str = "", tags: Sequence[str] = (), source: str = "", id: str = ""
) -> Entry:
    """An entry whose id, unless given, is the beginning of its content's digest."""
    if not text.strip():
        raise ValueError("the text is empty")
    if kind == "exemplar" and not response.strip():
        raise ValueError("an exemplar needs a response, the worked answer")
    content = digest_of([kind, text, response, list(tags)])
    return Entry(
        id=id or content[:10], kind=kind, text=text, response=response, tags=tuple(tags), source=source
    )


def _lines(file: Path) -> Iterable[tuple[int, str]]:
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    return ((number, line) for number, line in enumerate(lines, start=1) if line.strip())


def _parse(line: str, format: Format, kind: Kind, file: str) -> Entry | None:
    if format == "text":
        return None if line.lstrip().startswith("#") else _from_text(line, kind, file)
    return _from_json(line, kind, file)


def _from_text(line: str, kind: Kind, file: str) -> Entry:
    return new_entry(_BULLET.sub("", line).strip(), kind=kind, source=file)


def _from_json(line: str, kind: Kind, file: str) -> Entry:
    read = msgspec.json.decode(line, type=EntryLine)
    entry = new_entry(
        read.text,
        kind=read.kind or ("exemplar" if read.response else kind),
        response=read.response,
        tags=read.tags,
        source=read.source or file,
        id=read.id,
    )
    if read.digest and read.digest != entry.digest:
        raise ValueError(f"the digest of {entry.id!r} does not match its content")
    return replace(entry, state=read.state, reason=read.reason)
