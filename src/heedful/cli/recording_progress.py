"""Recording progress: bars on a terminal, occasional lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from heedful.cli.output import progress, say

if TYPE_CHECKING:
    from heedful.protocol.record import RecordingProgress


@contextmanager
def recording_progress() -> Iterator[Callable[[str, "RecordingProgress"], None]]:
    """Yields a function that shows the progress of a recording under a title."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    console = progress()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console, disable=not console.is_terminal) as bars:
        rows = {}
        printed: dict[str, int] = {}
        started: dict[str, tuple[float, int]] = {}

        def show(title: str, now: "RecordingProgress") -> None:
            if title not in rows:
                rows[title] = bars.add_task(title, total=now.total)
            bars.update(rows[title], completed=now.done)
            if now.calls:
                started.setdefault(title, (time.monotonic(), now.done))
            if not console.is_terminal and now.done >= printed.get(title, 0) + max(1, now.total // 10):
                printed[title] = now.done
                left = _left(now, *started[title]) if title in started else ""
                failed = f", {now.failed} failed" if now.failed else ""
                say(f"{title}: {now.done} of {now.total} passes, {now.calls} model calls{failed}{left}")

        yield show


def _left(now: "RecordingProgress", since: float, done: int) -> str:
    """The remaining time at the speed of the passes decoded so far."""
    if now.done in (done, now.total):
        return ""
    seconds = (time.monotonic() - since) / (now.done - done) * (now.total - now.done)
    return f", about {seconds / 60:.0f} minutes left" if seconds >= 60 else ", less than a minute left"
