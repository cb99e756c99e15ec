"""Questions with their targets, read from JSONL files that are checked by sha256."""

import os
import re
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from heedful.errors import MissingError, UsageError
from heedful.types import Item


def data_folder(given: Path | None) -> Path:
    """Where the benchmark files are: as given, or HEEDFUL_DATA."""
    folder = given or (Path(os.environ["HEEDFUL_DATA"]) if os.environ.get("HEEDFUL_DATA") else None)
    if folder is None:
        raise MissingError("the benchmark data are not here: set HEEDFUL_DATA or give --data FOLDER")
    if not folder.is_dir():
        raise MissingError(f"the data folder {folder} does not exist; set HEEDFUL_DATA or give --data FOLDER")
    return folder


def read_items(file: Path, digest: str | None = None) -> list[Item]:
    """The rows of a file; one whose sha256 is not the pinned one is refused."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise MissingError(f"the data file {file} cannot be read: {error.strerror}") from error
    found = sha256(content).hexdigest()
    if digest is not None and found != digest:
        raise UsageError(f"{file} has sha256 {found}, expected {digest}; get the published file again")
    lines = enumerate(content.split(b"\n"), start=1)
    items = [_item(file, number, line) for number, line in lines if line.strip()]
    if twice := [id for id, count in Counter(item.id for item in items).items() if count > 1]:
        raise UsageError(f"{file} has the id {twice[0]!r} twice; give each question an id of its own")
    return items


def _item(file: Path, number: int, line: bytes) -> Item:
    try:
        return msgspec.json.decode(line, type=Item)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{file} line {number} is not a question: {error}") from error


def with_choices(item: Item) -> str:
    """The question with its choices under it, one a line."""
    return "\n".join([item.question, *(f"{choice.label}. {choice.text}" for choice in item.choices)])


def normal_question(text: str) -> str:
    """A question's text for finding it again elsewhere: letters and digits only, lower case."""
    return " ".join("".join(char if char.isalnum() else " " for char in text.casefold()).split())


def bare_question(text: str) -> str:
    """A question without the choices that may stand under it."""
    return re.split(r"\n[A-E]\. ", text, maxsplit=1)[0]


def items_digest(items: Sequence[Item]) -> str:
    """A digest of the questions, with their choices if any, and targets in their order."""
    hasher = sha256()
    for item in items:
        choices = [item.choices] if item.choices else []
        hasher.update(msgspec.json.encode([item.id, item.question, item.answer, *choices]))
    return hasher.hexdigest()
