"""Progress of long work: bars on a terminal; elsewhere lines at the start, every 30 seconds, at the end."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from heedful.cli.output import progress, say

EVERY_SECONDS = 30.0
Show = Callable[[str, int, int, Callable[[], str]], None]
"""Shows a title, the number done, the total, and a text that is made when it is printed."""


class ProgressLines:
    """Prints the newest line of each title, never more than a few and never silent for long."""

    def __init__(
        self, write: Callable[[str], None] = say, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write = write
        self._clock = clock
        self._titles: set[str] = set()
        self._line: Callable[[], str] | None = None
        self._written = clock()
        self._lock = threading.Lock()

    def show(self, title: str, done: int, total: int, text: Callable[[], str]) -> None:
        with self._lock:
            started, ended = title not in self._titles, done >= total
            self._titles.add(title)
            self._line = lambda: f"{title}: {text()}"
            if (started and total) or ended or self._due():
                self._print()
            if ended:
                self._line = None

    def remind(self) -> None:
        """Print the newest line again if nothing was printed for a while, although no step has ended."""
        with self._lock:
            if self._line is not None and self._due():
                self._print()

    def _due(self) -> bool:
        return self._clock() - self._written >= EVERY_SECONDS

    def _print(self) -> None:
        assert self._line is not None, "a line is set before it is printed"
        self._write(self._line())
        self._written = self._clock()


@contextmanager
def shown_progress() -> Iterator[Show]:
    """Yields a function that shows progress under a title."""
    console = progress()
    if not console.is_terminal:
        lines = ProgressLines()
        with _reminding(lines):
            yield lines.show
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bars:
        rows = {}

        def show(title: str, done: int, total: int, text: Callable[[], str]) -> None:
            if title not in rows:
                rows[title] = bars.add_task(title, total=total)
            bars.update(rows[title], completed=done)

        yield show


@contextmanager
def _reminding(lines: ProgressLines) -> Iterator[None]:
    ended = threading.Event()

    def remind() -> None:
        while not ended.wait(1.0):
            lines.remind()

    threading.Thread(target=remind, daemon=True).start()
    try:
        yield
    finally:
        ended.set()
