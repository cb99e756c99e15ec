"""The event log: chained, and kept under the name it began with."""

import asyncio
from pathlib import Path

import pytest

from heedful.errors import LockError
from heedful.protocol.events import CHOSE, LOCKED, OPENED, events_of, harm_choices, log_event, read_events
from heedful.protocol.workflow import open_test_side
from heedful.protocol.workspace import Workspace
from tests.making import PreparedStudy
from tests.protocol.shelves import nobody, shelf_model


def test_events_are_read_back_as_they_were_logged(tmp_path: Path) -> None:
    file = Workspace(tmp_path).events
    log_event(file, CHOSE, "", "monday", made_of="choice")
    log_event(file, LOCKED, "abc", "tuesday")
    log_event(file, OPENED, "abc", "wednesday", passes="rows")
    assert [(event.at, event.event, event.lock) for event in read_events(file)] == [
        ("monday", CHOSE, ""),
        ("tuesday", LOCKED, "abc"),
        ("wednesday", OPENED, "abc"),
    ]
    assert harm_choices(file) == ["choice"]
    assert [event.passes for event in events_of(file, "abc")] == ["", "rows"]
    with pytest.raises(LockError, match="does not record when this lock was made"):
        events_of(file, "another")


def test_a_study_goes_on_with_the_log_it_began(tmp_path: Path) -> None:
    assert Workspace(tmp_path).events.name == "events.jsonl"
    log_event(tmp_path / "journal.jsonl", LOCKED, "abc", "monday")
    assert Workspace(tmp_path).events.name == "journal.jsonl"


@pytest.mark.parametrize("line", [b"{}", b"no JSON", b'{"at": 1, "event": "x", "lock": "", "before": ""}'])
def test_a_line_that_is_no_event_is_refused(tmp_path: Path, line: bytes) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(line + b"\n")
    with pytest.raises(LockError, match="was edited: a line does not match"):
        read_events(file)


def test_an_event_log_that_was_changed_is_refused(locked: PreparedStudy) -> None:
    space, setup = locked
    asyncio.run(open_test_side(space, setup, shelf_model(), nobody))
    lines = space.events.read_text().splitlines(keepends=True)
    space.events.write_text("".join(lines[1:]))
    with pytest.raises(LockError, match="was edited: a line does not match"):
        read_events(space.events)


def test_an_event_log_that_was_cut_is_refused(locked: PreparedStudy) -> None:
    space, _ = locked
    space.events.write_bytes(space.events.read_bytes()[:-9])
    with pytest.raises(LockError, match="was edited: a line does not match"):
        read_events(space.events)
