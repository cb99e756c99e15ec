"""Read and write entry files, in heedful's own formats and in those of other tools."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from heedful.errors import MalformedError, UsageError
from heedful.memory.formats import ace, grpo, lines, mem0
from heedful.plugins import Registry
from heedful.types import Entry, Kind

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
        ),
        "text": FileFormat(read=lines.read_text, write=lines.write_text, fits=lambda suffix, text: True),
    },
    fits=lambda part: isinstance(part, FileFormat),
)


def read_entries(
    file: Path, *, format: str | None = None, kind: Kind = "rule", skip_bad: bool = False
) -> tuple[list[Entry], list[tuple[int, str]]]:
    """The entries of a file, and its unreadable lines with their numbers and problems.

    An unreadable line raises `MalformedError` for the whole file unless `skip_bad` is set.
    """
    entries: list[Entry] = []
    bad: list[tuple[int, str]] = []
    seen: dict[str, int] = {}
    text = _text(file)
    format = format or format_of(file, text)
    if kind == "exemplar" and format != "jsonl":
        raise UsageError(f"the format {format} has no worked answers, so it cannot hold exemplars")
    for number, entry in format_named(format).read(text, kind):
        if isinstance(entry, str):
            bad.append((number, entry))
        elif entry.id in seen:
            bad.append((number, f"the same entry {entry.id!r} as on line {seen[entry.id]}"))
        else:
            seen[entry.id] = number
            entries.append(entry if entry.source else replace(entry, source=file.name))
    if bad and not skip_bad:
        shown = "; ".join(f"line {number}: {problem}" for number, problem in bad[:5])
        more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
        raise MalformedError(
            f"{file.name} was not imported: {shown}{more} (--skip-bad imports the rest)", tuple(bad)
        )
    return entries, bad


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
