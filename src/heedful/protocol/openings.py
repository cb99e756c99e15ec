"""What the event log of a study says about its test side, and whether the ledger still agrees."""

from heedful.errors import LockError
from heedful.protocol.events import OPENED, RECORDED, WENT_ON, StudyEvent, events_of
from heedful.protocol.ledger import Ledger
from heedful.protocol.lock import Lock
from heedful.protocol.passes_digest import passes_digest
from heedful.protocol.workspace import Workspace


def opening_events(space: Workspace, lock: Lock) -> list[StudyEvent]:
    """The openings and recordings of the test side under a lock."""
    return [e for e in events_of(space.events, lock.lock) if e.event in (OPENED, WENT_ON, RECORDED)]


def is_recorded(space: Workspace, lock: Lock, ledger: Ledger) -> bool:
    """Whether the whole test side was recorded, and the ledger holds these passes."""
    events = opening_events(space, lock)
    return (
        bool(events) and events[-1].event == RECORDED and events[-1].passes == passes_digest(ledger, "test")
    )


def refuse_unopened(space: Workspace, lock: Lock) -> None:
    """Refuse test passes that the event log does not open."""
    if not any(event.event == OPENED for event in opening_events(space, lock)):
        raise LockError(f"{space.events} does not record that the test side was opened: restore the file")


def refuse_changed_test_passes(space: Workspace, lock: Lock, ledger: Ledger) -> None:
    """Refuse test passes that changed since the last one was recorded; early logs have no digest of them."""
    events = opening_events(space, lock)
    if not events or events[-1].event != RECORDED:
        return
    if events[-1].passes not in ("", passes_digest(ledger, "test")):
        raise LockError(
            f"the test passes in {space.ledger} changed since {events[-1].at}, when the last one was "
            "recorded: restore them, or run heedful study test to record missing passes"
        )
