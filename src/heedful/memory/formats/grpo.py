"""Experiences of Training-Free GRPO: a flat JSON object, or lines in an agent's YAML file.

{"G0": "Name: advice", "G1": …}          [G0]. Name: advice
"""

import json
import re
from collections.abc import Iterator, Sequence

from heedful.memory.entries import new_entry
from heedful.types import Entry, Kind

_ID = re.compile(r"G\d+")
_LINE = re.compile(r"^(?P<indent>[ \t]*)\[(?P<id>G\d+)\]\. (?P<text>\S.*)$", re.MULTILINE)


def fits(suffix: str, text: str) -> bool:
    return suffix == ".json" and re.match(r'\s*\{\s*("G\d+"|\})', text) is not None


def read(text: str, kind: Kind) -> Iterator[tuple[int, Entry | str]]:
    try:
        experiences = json.loads(text)
    except ValueError as error:
        yield 1, f"not JSON: {error}"
        return
    if not isinstance(experiences, dict):
        yield 1, 'not an object of experiences such as {"G0": "Name: advice"}'
        return
    for number, (id, advice) in enumerate(experiences.items(), start=2):
        if not _ID.fullmatch(id) or not isinstance(advice, str) or not advice.strip():
            yield (
                number,
                f"{id!r} is not an experience: the key must be G and a number, the value a text",
            )
        else:
            yield number, new_entry(advice, kind=kind, id=id)


def write(entries: Sequence[Entry], old: str) -> str:
    """Numbered from G0, byte for byte as the authors' code writes it."""
    return json.dumps(
        {f"G{place}": entry.text for place, entry in enumerate(entries)}, ensure_ascii=False, indent=2
    )


def fits_yaml(suffix: str, text: str) -> bool:
    return suffix in (".yaml", ".yml")


def read_yaml(text: str, kind: Kind) -> Iterator[tuple[int, Entry | str]]:
    """The lines `[G0]. …` of the file; everything else is ignored."""
    matches = list(_LINE.finditer(text))
    if not matches:
        yield 1, "no experiences such as [G0]. Name: advice"
    for match in matches:
        yield text.count("\n", 0, match.start()) + 1, new_entry(match["text"], kind=kind, id=match["id"])


def write_yaml(entries: Sequence[Entry], old: str) -> str:
    """The old file with its experiences replaced, or a new file with experiences only."""
    matches = list(_LINE.finditer(old))
    if not matches:
        old = f"{old.rstrip()}\n" if old.strip() else ""
        return f"{old}instructions: |\n{_block(entries, '  ')}\n"
    start = matches[0].start()
    rest = re.sub(_LINE.pattern + r"\n?", "", old[start:], flags=re.MULTILINE)
    block = f"{_block(entries, matches[0]['indent'])}\n" if entries else ""
    return f"{old[:start]}{block}{rest}"


def _block(entries: Sequence[Entry], indent: str) -> str:
    return "\n".join(
        f"{indent}[G{place}]. {' '.join(entry.text.split())}" for place, entry in enumerate(entries)
    )
