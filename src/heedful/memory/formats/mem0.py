"""Memories as mem0 lists them: objects with `id` and `memory`, alone or under `results`."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from heedful.memory.entries import new_entry
from heedful.types import Entry, Kind


def fits(suffix: str, text: str) -> bool:
    return suffix == ".json" and '"memory"' in text and text.lstrip().startswith(("[", '{"results"', "{\n"))


def read(text: str, kind: Kind) -> Iterator[tuple[int, Entry | str]]:
    try:
        found = json.loads(text)
    except ValueError as error:
        yield 1, f"not JSON: {error}"
        return
    memories = found.get("results") if isinstance(found, dict) else found
    if not isinstance(memories, list):
        yield 1, 'not a list of memories like [{"id": "…", "memory": "…"}]'
        return
    for number, one in enumerate(memories, start=1):
        yield number, _entry(one, kind)


def _entry(one: Any, kind: Kind) -> Entry | str:
    said = one.get("memory") if isinstance(one, dict) else None
    if not isinstance(said, str) or not said.strip():
        return "no memory: an object with a text under `memory` is needed"
    tags = [str(tag) for tag in one.get("categories") or ()]
    return new_entry(said, kind=kind, id=str(one.get("id") or ""), tags=tags)


def write(entries: Sequence[Entry], old: str) -> str:
    memories = [{"id": entry.id, "memory": entry.text, "categories": list(entry.tags)} for entry in entries]
    return json.dumps({"results": memories}, ensure_ascii=False, indent=2) + "\n"
