"""How far a recording is: bars on a terminal, a line now and then elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from heedful.cli.output import progress, say

if TYPE_CHECKING:
    from heedful.protocol.record import Progress


@contextmanager
def recording_progress() -> Iterator[Callable[[str, "Progress"], None]]:
    """Gives a function that shows how far a recording is under its title."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    console = progress()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console, disable=not console.is_terminal) as bars:
        rows = {}
        said: dict[str, int] = {}
        begun: dict[str, tuple[float, int]] = {}

        def tell(title: str, told: "Progress") -> None:
            if title not in rows:
                rows[title] = bars.add_task(title, total=told.total)
            bars.update(rows[title], completed=told.done)
            if told.calls:
                begun.setdefault(title, (time.monotonic(), told.done))
            if not console.is_terminal and told.done >= said.get(title, 0) + max(1, told.total // 10):
                said[title] = told.done
                left = _left(told, *begun[title]) if title in begun else ""
                failed = f", {told.failed} failed" if told.failed else ""
                say(f"{title}: {told.done} of {told.total} passes, {told.calls} model calls{failed}{left}")

        yield tell


def _left(told: "Progress", since: float, done: int) -> str:
    """The time that the rest takes at the pace of the passes that were decoded so far."""
    if told.done in (done, told.total):
        return ""
    seconds = (time.monotonic() - since) / (told.done - done) * (told.total - told.done)
    return f", about {seconds / 60:.0f} minutes left" if seconds >= 60 else ", less than a minute left"
