"""ACE playbooks: sections of bullets with counts from the playbook's own model.

    ## STRATEGIES & INSIGHTS
    [str-00001] helpful=3 harmful=0 :: Break word problems into clear steps.

The counts become tags. They are a model's opinion of its own entries and are never used as evidence.
"""

import re
from collections.abc import Iterator, Sequence

from heedful.memory.entries import new_entry
from heedful.types import Entry, Kind

_BULLET = re.compile(
    r"\s*(?:[-*]\s*)?\[(?P<id>[^\]\s]+)\]\s+helpful=(?P<helpful>\d+)\s+harmful=(?P<harmful>\d+)\s*::\s*(?P<text>.*)"
)
_SECTION = "section:"


def fits(suffix: str, text: str) -> bool:
    return suffix in (".md", ".txt") and any(_BULLET.match(line) for line in text.split("\n"))


def read(text: str, kind: Kind) -> Iterator[tuple[int, Entry | str]]:
    section = ""
    bullets = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("#"):
            section = line.lstrip("#").strip()
        elif match := _BULLET.match(line):
            bullets += 1
            tags = [f"{_SECTION}{section}"] if section else []
            tags += [f"{count}={int(match[count])}" for count in ("helpful", "harmful")]
            bullet = match["text"].strip()
            yield (
                number,
                new_entry(bullet, kind=kind, id=match["id"], tags=tags) if bullet else "the bullet is empty",
            )
    if not bullets:
        yield 1, "no bullets such as [str-00001] helpful=0 harmful=0 :: text"


def write(entries: Sequence[Entry], old: str) -> str:
    """Sections in the order of their first bullet; entries without a section go under OTHERS."""
    sections: dict[str, list[str]] = {}
    for entry in entries:
        tags = dict(tag.partition("=")[::2] for tag in entry.tags if tag.startswith(("helpful=", "harmful=")))
        bullet = (
            f"[{entry.id}] helpful={tags.get('helpful', 0)} harmful={tags.get('harmful', 0)} :: "
            f"{' '.join(entry.text.split())}"
        )
        sections.setdefault(_section(entry), []).append(bullet)
    return "\n".join(
        f"## {name}\n" + "".join(f"{b}\n" for b in bullets) for name, bullets in sections.items()
    )


def _section(entry: Entry) -> str:
    named = (tag.removeprefix(_SECTION) for tag in entry.tags if tag.startswith(_SECTION))
    return next(named, "OTHERS")
