"""What a lock holds, and what breaks it."""

import asyncio
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as replace_struct

from heedful import (
    LockError,
)
from heedful.models.scripted import SCRIPTED
from heedful.protocol.ledger import Ledger
from heedful.protocol.lock import moved, read_lock, refuse_moved
from heedful.protocol.workflow import verify_lock
from heedful.protocol.workspace import read_json, write_json
from heedful.types import Usage
from tests.making import PreparedStudy
from tests.protocol.shelves import QUICK, shelf_model, through_lock


def test_a_change_of_the_metric_breaks_the_lock(locked: PreparedStudy) -> None:
    space, setup = locked
    assert setup.study.questions is not None
    study = replace_struct(setup.study, questions=replace_struct(setup.study.questions, metric="exact"))
    model = shelf_model()
    lock = read_lock(space.lock)
    assert moved(lock, replace(setup, study=study), model.traits, None, Ledger(space.ledger)) == ["grading"]


def test_whatever_moves_is_named(locked: PreparedStudy) -> None:
    model = shelf_model()
    space, setup = locked
    lock, ledger = read_lock(space.lock), Ledger(space.ledger)
    assert moved(lock, setup, model.traits, None, ledger) == []
    for name in lock.digests.keys() - {"code"}:
        tampered = replace(lock, digests={**lock.digests, name: "0" * 64})
        assert moved(tampered, setup, model.traits, None, ledger) == [name]
    assert lock.code is not None
    for name in lock.code.modules:
        tampered = replace(lock, code=replace(lock.code, modules={**lock.code.modules, name: "0" * 64}))
        assert moved(tampered, setup, model.traits, None, ledger) == [f"the code in {name}"]
    softer = replace(lock, fit=replace(lock.fit, policy=replace(lock.policy, threshold=inf)))
    assert moved(softer, setup, model.traits, None, ledger) == ["policy"]


def test_code_that_changed_is_named_by_its_module(locked: PreparedStudy) -> None:
    space, setup = locked
    lock = read_lock(space.lock)
    assert lock.code is not None
    code = replace(lock.code, modules={**lock.code.modules, "stages/route.py": "another"})
    with pytest.raises(LockError, match=r"broken: the code in stages/route\.py moved since") as caught:
        refuse_moved(replace(lock, code=code), setup, shelf_model().traits, None, Ledger(space.ledger))
    assert caught.value.exit_code == 4


def test_a_lock_of_an_earlier_version_says_that_its_code_cannot_be_compared(locked: PreparedStudy) -> None:
    space, setup = locked
    lock, ledger = replace(read_lock(space.lock), code=None), Ledger(space.ledger)
    with pytest.raises(LockError, match=r"cannot be compared piece by piece.*all else is as it was locked"):
        refuse_moved(lock, setup, shelf_model().traits, None, ledger)
    another = replace(shelf_model().traits, fingerprint="another")
    with pytest.raises(LockError, match=r"broken: model moved since .*cannot be compared piece by piece"):
        refuse_moved(lock, setup, another, None, ledger)


def test_a_lock_that_was_edited_is_refused(locked: PreparedStudy) -> None:
    space, setup = locked
    raw = read_json(space.lock, "")
    for edited in ({**raw, "policy": {**raw["policy"], "threshold": "always"}}, {**raw, "digests": {}}):
        write_json(space.lock, edited)
        with pytest.raises(LockError, match="the lock itself moved"):
            asyncio.run(verify_lock(space, setup, shelf_model()))


@pytest.mark.parametrize("lock", [{}, {"digests": {}}, {"model": 1, "policy": 2, "digests": 3}])
def test_a_lock_that_lost_its_parts_is_refused(locked: PreparedStudy, lock: dict[str, Any]) -> None:
    space, setup = locked
    write_json(space.lock, lock)
    with pytest.raises(LockError, match="the lock itself moved"):
        asyncio.run(verify_lock(space, setup, shelf_model()))


@pytest.mark.parametrize(
    "change",
    [
        {"answer": "item8"},
        {"calls": 7},
        {"guards": {"format": "empty"}},
        {"recalls": ()},
        {"usage": Usage(prompt_tokens=999)},
        {"seconds": 1e6},
    ],
)
def test_whatever_changes_in_a_fit_pass_breaks_the_lock(
    locked: PreparedStudy, change: dict[str, Any]
) -> None:
    space, setup = locked
    row = next(row for row in Ledger(space.ledger).of("fit", "notes") if row.record.recalls)
    with Ledger(space.ledger) as ledger:
        ledger.append(replace(row, record=replace(row.record, **change)))
    lock = read_lock(space.lock)
    assert moved(lock, setup, shelf_model().traits, None, Ledger(space.ledger)) == ["fit passes"]


def test_a_metric_of_ones_own_goes_with_the_study_and_its_change_breaks_the_lock(study: Path) -> None:
    (study.parent / "mine.py").write_text("def same(answer, target):\n    return answer == target\n")
    study.write_text(QUICK.replace('metric = "text"', 'metric = "python:mine:same"'))
    space, setup = through_lock(study, shelf_model())
    assert any(row.right for row in Ledger(space.ledger).passes.values())
    (space.folder / "mine.py").write_text("def same(answer, target):\n    return True\n")
    with pytest.raises(LockError, match="grading"):
        asyncio.run(verify_lock(space, setup, shelf_model()))


def test_a_lock_without_its_event_log_is_not_verified(locked: PreparedStudy) -> None:
    space, setup = locked
    space.events.unlink()
    with pytest.raises(LockError, match="does not tell when this lock was made"):
        asyncio.run(verify_lock(space, setup, shelf_model()))


def test_another_model_breaks_the_lock(locked: PreparedStudy) -> None:
    space, setup = locked
    other = shelf_model(traits=replace(SCRIPTED, fingerprint="other"))
    with pytest.raises(LockError, match="model"):
        asyncio.run(verify_lock(space, setup, other))
