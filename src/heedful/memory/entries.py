"""Create entries and convert them to JSON fields."""

from collections.abc import Sequence

from heedful.types import Entry, Kind, digest_of


def new_entry(
    text: str, *, kind: Kind, response: str = "", tags: Sequence[str] = (), source: str = "", id: str = ""
) -> Entry:
    """Create an entry; the default id is a prefix of its content's digest."""
    if not text.strip():
        raise ValueError("the text is empty")
    if kind == "exemplar" and not response.strip():
        raise ValueError("an exemplar needs a response, the worked answer")
    content = digest_of([kind, text, response, list(tags)])
    return Entry(
        id=id or content[:10], kind=kind, text=text, response=response, tags=tuple(tags), source=source
    )


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
