"""The demo's scenario: a fictional company, its bank, questions with right answers, and a study."""

import re
import shutil
from importlib.resources import as_file, files
from pathlib import Path

from heedful.benchmarks.items import read_items
from heedful.errors import StoreError, UsageError
from heedful.memory.formats import read_entries
from heedful.types import Entry, Item, Side

SOURCE = "demo"
_FIRST_LINE = b"# The study that `heedful demo` runs"
FILES = ("study.toml", "fit.jsonl", "test.jsonl", "bank.jsonl")


def write_study(folder: Path, limit: int | None = None) -> None:
    """Create the study again in its folder; `limit` is the maximum number of test questions."""
    try:
        if folder.exists():
            if not _is_demo(folder):
                raise UsageError(
                    f"{folder} exists and is not a heedful demo; move it, or choose another --store"
                )
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        for name in FILES:
            (folder / name).write_bytes((files(__package__) / name).read_bytes())
        if limit is not None:
            with (folder / "study.toml").open("a", encoding="utf-8") as file:
                file.write(f"\n[split]\ntest = {limit}\n")
    except OSError as error:
        raise StoreError(f"cannot write the demo's folder {folder}: {error.strerror}") from error


def _is_demo(folder: Path) -> bool:
    study = folder / "study.toml"
    return not any(folder.iterdir()) or (study.is_file() and study.read_bytes().startswith(_FIRST_LINE))


def entries() -> list[Entry]:
    """The demo's bank; it contains stale, contradictory and harmful entries on purpose, and tags them."""
    with as_file(files(__package__) / "bank.jsonl") as file:
        return read_entries(file)[0]


def questions(side: Side) -> list[Item]:
    """The questions of a side; `meta.needs` is `memory`, `none` or `trap` (needs care)."""
    with as_file(files(__package__) / f"{side}.jsonl") as file:
        return read_items(file)


def names_right(answer: str, target: str) -> bool:
    """Whether an answer names a right alternative and no wrong one, as whole words in any case.

    The target is written `right | also right ! wrong | also wrong`.
    """
    right, _, wrong = target.partition("!")
    return _names(right, answer) and not _names(wrong, answer)


def _names(aliases: str, answer: str) -> bool:
    names = [alias.strip() for alias in aliases.split("|") if alias.strip()]
    return any(re.search(_WHOLE.format(re.escape(name)), answer, re.IGNORECASE) for name in names)


_WHOLE = r"(?<!\w)(?<!\d[.,:]){}(?!\w)(?![.,:]\d)"
"""A whole word or number: 7 is not in 7,000, in 7.5 or in 7:30."""
