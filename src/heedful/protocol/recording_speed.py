"""The speed of a running recording, in a small file beside the ledger."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from heedful.models.fleet import Fleet
from heedful.ports import Model
from heedful.protocol.line_file import is_held
from heedful.protocol.record import OnProgress, RecordingProgress
from heedful.protocol.workspace import Workspace, write_json

WINDOW = 60.0
"""Seconds over which the speed is measured."""
SECONDS_BETWEEN_NOTES = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingSpeed:
    workers: int | None = None
    """Workers that take passes now; 1 for a single model."""
    passes_per_minute: float | None = None
    """None until the first pass was decoded."""


class SpeedNotes:
    """Passes progress on, and notes the speed until the recording ends."""

    def __init__(
        self, file: Path, model: Model, tell: OnProgress, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._file = file
        self._model = model
        self._tell = tell
        self._clock = clock
        self._done: deque[tuple[float, int]] = deque()
        """Times and passes since the first call, within the window."""
        self._noted = float("-inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.unlink(missing_ok=True)

    def __call__(self, progress: RecordingProgress) -> None:
        self._tell(progress)
        now = self._clock()
        if progress.calls:
            self._done.append((now, progress.done))
        while len(self._done) > 2 and now - self._done[1][0] > WINDOW:
            self._done.popleft()
        if now - self._noted >= SECONDS_BETWEEN_NOTES:
            self._noted = now
            write_json(self._file, asdict(self._speed()))

    def _speed(self) -> RecordingSpeed:
        workers = self._model.up if isinstance(self._model, Fleet) else 1
        if not self._done or self._done[-1][0] == self._done[0][0]:
            return RecordingSpeed(workers=workers)
        (start, before), (end, after) = self._done[0], self._done[-1]
        return RecordingSpeed(
            workers=workers, passes_per_minute=round(60 * (after - before) / (end - start), 1)
        )


def recording_speed(space: Workspace) -> RecordingSpeed:
    """The speed of the recording that holds the study's ledger; empty if none runs."""
    if not is_held(space.ledger) or not space.speed.exists():
        return RecordingSpeed()
    try:
        return msgspec.json.decode(space.speed.read_bytes(), type=RecordingSpeed)
    except (OSError, msgspec.MsgspecError):  # it may end at this very moment
        return RecordingSpeed()
