"""The speed of a running recording."""

from pathlib import Path

from heedful import ScriptedModel
from heedful.protocol.ledger import Ledger
from heedful.protocol.record import RecordingProgress
from heedful.protocol.recording_speed import RecordingSpeed, SpeedNotes, recording_speed
from heedful.protocol.workspace import Workspace

MODEL = ScriptedModel(script={})


def progress(done: int, calls: int) -> RecordingProgress:
    return RecordingProgress(done=done, total=1000, calls=calls)


def test_the_speed_counts_the_passes_of_the_last_minute_since_the_first_call(tmp_path: Path) -> None:
    space, seen = Workspace(tmp_path), list[RecordingProgress]()
    times = iter([0.0, 10.0, 70.0, 100.0])
    with (
        Ledger(space.ledger),
        SpeedNotes(space.speed, MODEL, seen.append, clock=lambda: next(times)) as tell,
    ):
        tell(progress(500, 0))  # known passes cost no time
        assert recording_speed(space) == RecordingSpeed(workers=1, passes_per_minute=None)
        for done, calls in ((501, 1), (561, 61), (621, 121)):
            tell(progress(done, calls))
        assert recording_speed(space) == RecordingSpeed(workers=1, passes_per_minute=80.0)
    assert [one.done for one in seen] == [500, 501, 561, 621]
    assert recording_speed(space) == RecordingSpeed()
    assert not space.speed.exists()


def test_a_killed_recording_leaves_no_speed(tmp_path: Path) -> None:
    space = Workspace(tmp_path)
    space.speed.write_text('{"workers": 3, "passes_per_minute": 9.5}')
    assert recording_speed(space) == RecordingSpeed()
    with Ledger(space.ledger):
        assert recording_speed(space) == RecordingSpeed(workers=3, passes_per_minute=9.5)
        space.speed.write_text("{")
        assert recording_speed(space) == RecordingSpeed()
