"""Create entries and convert them to JSON fields."""

from collections.abc import Sequence
from typing import get_args

from heedful.errors import UsageError
from heedful.limits import refuse_choice, refuse_text
from heedful.types import Entry, Kind, digest_of


def new_entry(
    text: str, *, kind: Kind, response: str = "", tags: Sequence[str] = (), source: str = "", id: str = ""
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


def refuse_bank_name(name: object) -> None:
    """Raise `UsageError` unless a bank can have this name: printable text without spaces around it."""
    if not isinstance(name, str) or not name.isprintable() or name != name.strip() or not name:
        raise UsageError(f"a bank cannot be named {name!r}; use one line of text without spaces around it")
