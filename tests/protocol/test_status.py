"""How far a study is."""

import asyncio
from dataclasses import replace
from pathlib import Path

from heedful.protocol.ledger import Ledger
from heedful.protocol.setup import prepare
from heedful.protocol.status import status_of
from heedful.protocol.workflow import record
from heedful.protocol.workspace import open_workspace
from tests.protocol.shelves import ROWS, STUDY, nobody, shelf_model


def test_the_time_left_counts_sources_that_have_not_begun(study: Path) -> None:
    study.write_text(STUDY.partition("[sources.retry]")[0])
    space = open_workspace(study, study.parent / "out")
    setup = prepare(space.study, None)
    ledger = asyncio.run(record(space, setup, shelf_model(), "fit", nobody))
    plain = [
        replace(row, record=replace(row.record, seconds=10.0))
        for row in ledger.passes.values()
        if row.record.source == "none"
    ]
    space.ledger.unlink()
    with Ledger(space.ledger) as slow:
        for row in plain:
            slow.append(row)
    found = status_of(space, setup).sides
    passes = {"fit": 2 * ROWS, "test": 3 * ROWS}
    slots = setup.study.model.slots
    assert {side: found[side].seconds_left * slots for side in found} == {
        side: 10 * count for side, count in passes.items()
    }


def test_a_damaged_line_is_reported_until_its_pass_is_recorded_again(study: Path) -> None:
    study.write_text(STUDY.partition("[sources.other]")[0])
    space = open_workspace(study, study.parent / "out")
    setup = prepare(space.study, None)
    asyncio.run(record(space, setup, shelf_model(), "fit", nobody))
    lines = space.ledger.read_bytes().splitlines(keepends=True)
    space.ledger.write_bytes(b"".join([*lines[:-1], lines[-1][:30] + b"\n"]))
    assert [damage.line for damage in status_of(space, setup).damaged_rows] == [len(lines)]
    asyncio.run(record(space, setup, shelf_model(), "fit", nobody))
    assert len(Ledger(space.ledger).damage) == 1, "the line itself stays"
    assert status_of(space, setup).damaged_rows == ()
