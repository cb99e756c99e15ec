"""Memories as mem0 lists them: objects with `id` and `memory`, at the top level or under `results`."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from heedful.memory.entries import new_entry, read_moment
from heedful.types import Entry, Kind

METADATA = "metadata."
"""The start of a tag that holds a value of a memory's metadata."""
OWNERS = {"user": "user_id", "agent": "agent_id", "app": "app_id", "run": "run_id"}
"""Keys of an entry's scope, and the fields of a memory that they come from."""


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
    metadata = memory.get("metadata")
    tags = [str(tag) for tag in memory.get("categories") or ()]
    if isinstance(metadata, dict):
        tags += [f"{METADATA}{key}={json.dumps(metadata[key], ensure_ascii=False)}" for key in metadata]
    try:
        return new_entry(
            content,
            kind=kind,
            id=str(memory.get("id") or ""),
            tags=tags,
            scope={key: str(memory[name]) for key, name in OWNERS.items() if memory.get(name)},
            valid_until=read_moment(memory.get("expiration_date")),
        )
    except (TypeError, ValueError) as error:
        return str(error)


def write(entries: Sequence[Entry], old: str) -> str:
    memories = [_memory(entry) for entry in entries]
    return json.dumps({"results": memories}, ensure_ascii=False, indent=2) + "\n"


def _memory(entry: Entry) -> dict[str, Any]:
    pairs = [tag.removeprefix(METADATA).partition("=") for tag in entry.tags if tag.startswith(METADATA)]
    metadata = {key: _value(text) for key, _, text in pairs}
    memory = {
        "id": entry.id,
        "memory": entry.text,
        "categories": [tag for tag in entry.tags if not tag.startswith(METADATA)],
        **({"metadata": metadata} if metadata else {}),
        **{name: entry.scope[key] for key, name in OWNERS.items() if key in entry.scope},
    }
    if entry.valid_until is not None:
        memory["expiration_date"] = datetime.fromtimestamp(entry.valid_until, UTC).isoformat()
    return memory


def _value(text: str) -> Any:
    """A value of the metadata; a tag that a person wrote need not be JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text
