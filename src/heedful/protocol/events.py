"""The event log of a study; each line holds a digest of the lines before it."""

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec

from heedful.errors import LockError
from heedful.protocol.workspace import write_text

CHOSE, LOCKED, OPENED, WENT_ON, RECORDED, CROSSFITTED = (
    "chose a policy under a harm limit",
    "locked",
    "opened the test side",
    "went on recording the test side",
    "recorded the whole test side",
    "cross-fitted on the rows of both sides",
)
"""The kinds of events; the first is logged before a lock exists. Published files hold these strings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyEvent:
    """A line of the event log."""

    at: str
    event: str
    lock: str
    """Digest of the lock it belongs to; empty before a lock exists."""
    made_of: str = ""
    """For a choice under a harm limit: digest of the choice and its inputs."""
    passes: str = ""
    """For a recorded test side: digest of its passes."""
    before: str
    """Digest of all lines before this one."""


def log_event(file: Path, event: str, lock: str, at: str, *, made_of: str = "", passes: str = "") -> None:
    """Append to the event log."""
    written = file.read_bytes() if file.exists() else b""
    more = {name: digest for name, digest in (("made_of", made_of), ("passes", passes)) if digest}
    line = json.dumps({"at": at, "event": event, "lock": lock, **more, "before": _digest(written)})
    write_text(file, f"{written.decode()}{line}\n")


def read_events(file: Path) -> list[StudyEvent]:
    """The events of a study; a changed or removed line breaks the chain of digests."""
    events: list[StudyEvent] = []
    so_far = b""
    for line in file.read_bytes().splitlines(keepends=True) if file.exists() else ():
        try:
            event = msgspec.json.decode(line, type=StudyEvent)
        except msgspec.MsgspecError:
            event = None
        if event is None or event.before != _digest(so_far):
            raise LockError(
                f"the event log {file} was edited: a line does not match the digests; restore the file"
            )
        events.append(event)
        so_far += line
    return events


def events_of(file: Path, lock: str) -> list[StudyEvent]:
    """The events of a lock; a log that does not start with the locking is incomplete."""
    events = [event for event in read_events(file) if event.lock == lock]
    if not events or events[0].event != LOCKED:
        raise LockError(f"the event log {file} does not record when this lock was made: restore the file")
    return events


def harm_choices(file: Path) -> list[str]:
    """Digests of the choices under a harm limit so far: each was another chance to be certified."""
    return [event.made_of for event in read_events(file) if event.event == CHOSE]


def _digest(lines: bytes) -> str:
    return sha256(lines).hexdigest() if lines else ""
