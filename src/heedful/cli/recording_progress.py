"""The progress of recordings, with their calls, failures and remaining time."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from heedful.cli.output import counted
from heedful.cli.progress import shown_progress

if TYPE_CHECKING:
    from heedful.protocol.record import RecordingProgress


@contextmanager
def recording_progress() -> Iterator[Callable[[str, "RecordingProgress"], None]]:
    """Yields a function that shows the progress of a recording under a title."""
    with shown_progress() as show_progress:
        started: dict[str, tuple[float, int]] = {}

        def show(title: str, now: "RecordingProgress") -> None:
            if now.calls:
                started.setdefault(title, (time.monotonic(), now.done))
            show_progress(title, now.done, now.total, partial(_words, now, started.get(title)))

        yield show


def _words(now: "RecordingProgress", started: tuple[float, int] | None) -> str:
    failed = f", {now.failed} failed" if now.failed else ""
    left = "" if started is None else _left(now, *started)
    return f"{now.done} of {now.total} passes, {now.calls} model calls{failed}{left}"


def _left(now: "RecordingProgress", since: float, done: int) -> str:
    """The remaining time at the speed of the passes decoded so far."""
    if now.done in (done, now.total):
        return ""
    seconds = (time.monotonic() - since) / (now.done - done) * (now.total - now.done)
    return (
        f", about {counted(round(seconds / 60), 'minute')} left"
        if seconds >= 60
        else ", less than a minute left"
    )
