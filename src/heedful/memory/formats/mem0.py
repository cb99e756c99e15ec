"""Memories as mem0 lists them: objects with `id` and `memory`, at the top level or under `results`."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from heedful.memory.entries import new_entry
from heedful.types import Entry, Kind


def fits(suffix: str, text: str) -> bool:
    return suffix == ".json" and '"memory"' in text and text.lstrip().startswith(("[", '{"results"', "{\n"))


def read(text: str, kind: Kind) -> Iterator[tuple[int, Entry | str]]:
    try:
        document = json.loads(text)
    except ValueError as error:
        yield 1, f"not JSON: {error}"
        return
    memories = document.get("results") if isinstance(document, dict) else document
    if not isinstance(memories, list):
        yield 1, 'not a list of memories such as [{"id": "…", "memory": "…"}]'
        return
    for number, memory in enumerate(memories, start=1):
        yield number, _entry(memory, kind)


def _entry(memory: Any, kind: Kind) -> Entry | str:
    content = memory.get("memory") if isinstance(memory, dict) else None
    if not isinstance(content, str) or not content.strip():
        return "not a memory: expected an object with a text under `memory`"
    tags = [str(tag) for tag in memory.get("categories") or ()]
    return new_entry(content, kind=kind, id=str(memory.get("id") or ""), tags=tags)


def write(entries: Sequence[Entry], old: str) -> str:
    memories = [{"id": entry.id, "memory": entry.text, "categories": list(entry.tags)} for entry in entries]
    return json.dumps({"results": memories}, ensure_ascii=False, indent=2) + "\n"
