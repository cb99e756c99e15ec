"""Questions with their targets: published files, checked by sha256, and questions in normal form."""

import os
import re
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from heedful.errors import MissingError, UsageError
from heedful.mismatch import mismatch
from heedful.types import Item


def data_folder(given: Path | None) -> Path:
    """The folder of the benchmark files: the given one, or HEEDFUL_DATA."""
    folder = given or (Path(os.environ["HEEDFUL_DATA"]) if os.environ.get("HEEDFUL_DATA") else None)
    if folder is None:
        raise MissingError("no folder of benchmark data is set; set HEEDFUL_DATA or use --data FOLDER")
    if not folder.is_dir():
        raise MissingError(f"the data folder {folder} does not exist; set HEEDFUL_DATA or use --data FOLDER")
    return folder


def read_items(file: Path, digest: str | None = None) -> list[Item]:
    """The rows of a file; a file with the wrong sha256 is rejected."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise MissingError(f"cannot read the data file {file}: {error.strerror}") from error
    actual = sha256(content).hexdigest()
    if digest is not None and actual != digest:
        raise UsageError(f"{file} has sha256 {actual}, expected {digest}; get the published file again")
    lines = enumerate(content.split(b"\n"), start=1)
    items = [_item(file, number, line) for number, line in lines if line.strip()]
    if repeated := [id for id, count in Counter(item.id for item in items).items() if count > 1]:
        raise UsageError(f"{file} has the id {repeated[0]!r} more than once; give each question a unique id")
    return items


def _item(file: Path, number: int, line: bytes) -> Item:
    try:
        return msgspec.json.decode(line, type=Item)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{file} line {number} is not a question: {mismatch(error)}") from error


def with_choices(item: Item) -> str:
    """The question followed by its choices, one per line."""
    return "\n".join([item.question, *(f"{choice.label}. {choice.text}" for choice in item.choices)])


def statement(item: Item) -> str:
    """The question with the text of its right answer: a fact that the row teaches."""
    named = {choice.label: choice.text for choice in item.choices}
    return f"{item.question} {named.get(item.answer, item.answer)}"


def normal_question(text: str) -> str:
    """A question's text in normal form for comparisons: lower case, letters and digits only."""
    return " ".join("".join(char if char.isalnum() else " " for char in text.casefold()).split())


def bare_question(text: str) -> str:
    """A question without the choices that may follow it."""
    return re.split(r"\n[A-E]\. ", text, maxsplit=1)[0]


def items_digest(items: Sequence[Item]) -> str:
    """A digest of the questions, their choices if any, and their targets, in order."""
    hasher = sha256()
    for item in items:
        choices = [item.choices] if item.choices else []
        also = [{"also": item.also}] if item.also else []
        hasher.update(msgspec.json.encode([item.id, item.question, item.answer, *choices, *also]))
    return hasher.hexdigest()
