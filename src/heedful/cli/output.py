"""Results go to stdout, progress and logs to stderr."""

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def print_json(value: object) -> None:
    """Print the result as one JSON object."""
    print(json.dumps(value, ensure_ascii=False, indent=2), flush=True)


def say(message: str) -> None:
    """Print a line of progress."""
    print(message, file=sys.stderr)


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun: 1 decision, 2 decisions."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def result() -> "Console":
    """The console for results: text as it is; plain and wide if stdout is not a terminal."""
    from rich.console import Console

    return Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else 110)


def progress() -> "Console":
    """The console for progress."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, emoji=False)
