"""The progress of a study."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heedful.protocol.events import OPENED, read_events
from heedful.protocol.grading_check import GradingWarning, check_grading
from heedful.protocol.ledger import Damage, Ledger, Pass
from heedful.protocol.recording_speed import recording_speed
from heedful.protocol.setup import StudySetup
from heedful.protocol.workspace import Workspace
from heedful.types import Side


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceProgress:
    """How many passes of a source are recorded."""

    recorded: int
    wanted: int
    failed: int
    error: str
    """The task and the error of a failed pass, as an example."""
    """Of those recorded; `heedful study record --retry-failed` decodes them again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideProgress:
    sources: Mapping[str, SourceProgress]
    seconds_left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyStatus:
    """Passes recorded and wanted by side and source, time left, and completed steps."""

    warnings: tuple[GradingWarning, ...]
    """Signs that the metric misreads answers."""
    study: str
    folder: str
    sides: Mapping[Side, SideProgress]
    seconds_left: int
    damaged_rows: Sequence[Damage]
    """Of a side that lacks passes: once they are recorded again, damaged lines do not matter."""
    fitted: bool
    locked: bool
    test_openings: int
    workers: int | None
    """Of the running recording; None if none runs."""
    passes_per_minute: float | None


def status_of(space: Workspace, setup: StudySetup) -> StudyStatus:
    """The status of the study in a folder."""
    ledger = Ledger(space.ledger)
    speed = recording_speed(space)
    every: tuple[Side, Side] = ("fit", "test")
    sides = {side: _side(ledger, setup, side) for side in every}
    return StudyStatus(
        warnings=grading_warnings(space, setup, ledger),
        study=setup.study.name,
        folder=str(space.folder),
        sides=sides,
        seconds_left=sum(side.seconds_left for side in sides.values()),
        damaged_rows=ledger.damage if any(map(_lacks_passes, sides.values())) else (),
        fitted=space.fitted,
        locked=space.lock.exists(),
        test_openings=sum(event.event == OPENED for event in read_events(space.events)),
        workers=speed.workers,
        passes_per_minute=speed.passes_per_minute,
    )


def grading_warnings(
    space: Workspace, setup: StudySetup, ledger: Ledger | None = None
) -> tuple[GradingWarning, ...]:
    """Signs that the metric misreads the recorded answers."""
    passes = (Ledger(space.ledger) if ledger is None else ledger).passes.values()
    items = {item.id: item for item in (*setup.splits.fit, *setup.splits.test)}
    return check_grading(passes, items, setup.benchmark)


def _side(ledger: Ledger, setup: StudySetup, side: Side) -> SideProgress:
    items = setup.splits.asked(side)
    wanted = {(seed, item.id) for seed in setup.study.seeds for item in items}
    slots = setup.study.model.slots
    other: Side = "test" if side == "fit" else "fit"
    sources, left = {}, 0.0
    for name in setup.sources(side, 0):
        rows = [row for row in ledger.of(side, name) if (row.seed, row.task) in wanted]
        pace = _pace(rows or list(ledger.of(other, name)) or list(ledger.passes.values()))
        left += (len(wanted) - len(rows)) * pace / slots
        failed = [row for row in rows if row.record.status == "failed"]
        sources[name] = SourceProgress(
            recorded=len(rows),
            wanted=len(wanted),
            failed=len(failed),
            error=f"{failed[0].task}: {failed[0].record.error}" if failed else "",
        )
    return SideProgress(sources=sources, seconds_left=round(left))


def _lacks_passes(side: SideProgress) -> bool:
    """Whether a side was begun and is not complete."""
    counts = side.sources.values()
    return 0 < sum(count.recorded for count in counts) < sum(count.wanted for count in counts)


def _pace(rows: Sequence[Pass]) -> float:
    """Seconds per pass."""
    return sum(row.record.seconds for row in rows) / len(rows) if rows else 0.0
