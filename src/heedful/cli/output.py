"""stdout is the result, stderr is progress and logs."""

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def print_json(value: object) -> None:
    """The result as one JSON object."""
    print(json.dumps(value, ensure_ascii=False, indent=2))


def say(message: str) -> None:
    """A line of progress."""
    print(message, file=sys.stderr)


def result() -> "Console":
    """Where the result is drawn; plain and wide when stdout is not a terminal."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else 110)


def progress() -> "Console":
    """Where progress is drawn."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)
