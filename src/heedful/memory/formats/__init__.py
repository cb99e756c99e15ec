"""Read and write entry files, in heedful's own formats and in those of other tools."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path

from heedful.errors import MalformedError, UsageError
from heedful.memory.entries import distinct_ids, has_own_id
from heedful.memory.formats import ace, grpo, lines, mem0
from heedful.plugins import Registry
from heedful.types import Entry, Kind

PART = 5000
"""Lines that are read, and entries that are stored, together."""
Found = tuple[int, Entry | str]
"""A line number with the line's entry or its problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    read: Callable[[str, Kind], Iterator[Found]]
    """From the file's text and the default kind of entries."""
    write: Callable[[Sequence[Entry], str], str]
    """From the entries and the old text of the file, to keep what is not an entry."""
    fits: Callable[[str, str], bool] = lambda suffix, text: False
    """Whether a file with this extension and text has the format."""
    lines: bool = False
    """Whether each line is read on its own, so that a long file can be read in parts."""


FORMATS: Registry[FileFormat] = Registry(
    "heedful.formats",
    {
        "tfgrpo": FileFormat(read=grpo.read, write=grpo.write, fits=grpo.fits),
        "tfgrpo-yaml": FileFormat(read=grpo.read_yaml, write=grpo.write_yaml, fits=grpo.fits_yaml),
        "ace": FileFormat(read=ace.read, write=ace.write, fits=ace.fits),
        "mem0": FileFormat(read=mem0.read, write=mem0.write, fits=mem0.fits),
        "jsonl": FileFormat(
            read=lines.read_jsonl,
            write=lines.write_jsonl,
            fits=lambda suffix, text: suffix in (".jsonl", ".ndjson", ".json"),
            lines=True,
        ),
        "text": FileFormat(
            read=lines.read_text, write=lines.write_text, fits=lambda suffix, text: True, lines=True
        ),
    },
    fits=lambda part: isinstance(part, FileFormat),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFile:
    """A file of entries that was read once and can be read again in parts."""

    parts: Callable[[], Iterator[list[Entry]]]
    """The readable entries, at most `PART` at a time."""
    count: int
    bad: tuple[tuple[int, str], ...]
    """Unreadable lines with their numbers and problems."""


def scan_entries(
    file: Path, *, format: str | None = None, kind: Kind = "rule", skip_bad: bool = False
) -> EntryFile:
    """Check a file line by line; entries are not kept.

    An unreadable line raises `MalformedError` for the whole file unless `skip_bad` is set.
    """
    format = format or format_of(file, "" if file.suffix.lower() in (".jsonl", ".ndjson") else _text(file))
    if kind == "exemplar" and format != "jsonl":
        raise UsageError(f"the format {format} has no worked answers, so it cannot hold exemplars")
    chosen, bad, seen = format_named(format), [], dict[int, int]()
    for part in _parts(file, chosen, kind):
        for number, entry in part:
            if isinstance(entry, str):
                bad.append((number, entry))
            elif (first := seen.setdefault(_number(entry), number)) != number:
                bad.append((number, f"the same entry {entry.id!r} as on line {first}"))
    if bad and not skip_bad:
        raise MalformedError(f"{file.name} was not imported: {_shown(bad)}", tuple(bad))
    unreadable = {number for number, _ in bad}

    def parts() -> Iterator[list[Entry]]:
        for part in _parts(file, chosen, kind):
            entries = [e for number, e in part if isinstance(e, Entry) and number not in unreadable]
            yield [entry if entry.source else replace(entry, source=file.name) for entry in entries]

    return EntryFile(parts=parts, count=len(seen), bad=tuple(bad))


def read_entries(
    file: Path, *, format: str | None = None, kind: Kind = "rule", skip_bad: bool = False
) -> tuple[list[Entry], list[tuple[int, str]]]:
    """The entries of a file, and its unreadable lines; see `scan_entries`."""
    scanned = scan_entries(file, format=format, kind=kind, skip_bad=skip_bad)
    return distinct_ids({}, [entry for part in scanned.parts() for entry in part]), list(scanned.bad)


def _parts(file: Path, format: FileFormat, kind: Kind) -> Iterator[list[Found]]:
    """The lines of a file in parts; a format that needs the whole text is one part."""
    if not format.lines:
        yield list(format.read(_text(file), kind))
        return
    start = 0
    for block in _blocks(file):
        yield [(start + number, entry) for number, entry in format.read("".join(block), kind)]
        start += len(block)


def _blocks(file: Path) -> Iterator[list[str]]:
    try:
        with open(file, encoding="utf-8-sig") as content:
            while block := list(islice(content, PART)):
                yield block
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error


def _number(entry: Entry) -> int:
    """64 bits of what makes an entry unique: enough to tell a billion apart, in little memory."""
    unique = entry.digest if has_own_id(entry) else entry.id
    return int.from_bytes(sha256(unique.encode()).digest()[:8], "big")


def _shown(bad: Sequence[tuple[int, str]]) -> str:
    shown = "; ".join(f"line {number}: {problem}" for number, problem in bad[:5])
    more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
    return f"{shown}{more} (--skip-bad imports the rest)"


def write_entries(entries: Sequence[Entry], format: str, old: str = "") -> str:
    """The text of a file that `read_entries` can read; only JSON lines preserve entries completely."""
    return format_named(format).write(entries, old)


def format_of(file: Path, text: str = "") -> str:
    """The format of a file, by its extension and, if that is ambiguous, by its content."""
    known = {**FORMATS.added(), **FORMATS}  # `text` fits every file, so plug-in formats come first
    return next(name for name, format in known.items() if format.fits(file.suffix.lower(), text))


def format_named(name: str) -> FileFormat:
    if name not in FORMATS:
        raise UsageError(f"unknown file format {name!r}; choose one of {', '.join(FORMATS)}")
    return FORMATS[name]


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
