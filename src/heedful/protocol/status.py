"""How far a study is."""

from collections.abc import Sequence
from typing import Any

from heedful.protocol.ledger import Ledger, Pass
from heedful.protocol.lock import OPENED, read_journal
from heedful.protocol.setting import Setting
from heedful.protocol.workspace import Workspace
from heedful.types import Side


def status_of(space: Workspace, setting: Setting) -> dict[str, Any]:
    """Passes recorded and wanted by side and source, time left, and which steps are done."""
    ledger = Ledger(space.ledger)
    sides = {side: _side(ledger, setting, side) for side in ("fit", "test")}
    events = read_journal(space.journal)
    return {
        "study": setting.study.name,
        "folder": str(space.folder),
        "sides": sides,
        "seconds_left": sum(side["seconds_left"] for side in sides.values()),
        "damaged_rows": [{"line": one.line, "problem": one.problem} for one in ledger.damage],
        "fitted": space.fit.exists(),
        "locked": space.lock.exists(),
        "test_openings": sum(event["event"] == OPENED for event in events),
    }


def _side(ledger: Ledger, setting: Setting, side: Side) -> dict[str, Any]:
    items = setting.splits.asked(side)
    wanted = {(seed, item.id) for seed in setting.study.seeds for item in items}
    slots = setting.study.model.slots
    other: Side = "test" if side == "fit" else "fit"
    sources, left = {}, 0.0
    for name in setting.sources(side, 0):
        rows = [row for row in ledger.of(side, name) if (row.seed, row.task) in wanted]
        pace = _pace(rows or list(ledger.of(other, name)) or list(ledger.passes.values()))
        left += (len(wanted) - len(rows)) * pace / slots
        sources[name] = {"recorded": len(rows), "wanted": len(wanted)}
    return {"sources": sources, "seconds_left": round(left)}


def _pace(rows: Sequence[Pass]) -> float:
    """Seconds a pass."""
    return sum(row.record.seconds for row in rows) / len(rows) if rows else 0.0
