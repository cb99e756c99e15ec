"""The clusters of a study are found once, locked, and read without the questions."""

import asyncio
import json
from pathlib import Path

import pytest

from heedful import LockError, UsageError
from heedful.protocol.cluster_file import (
    fit_clusters,
    locked_clusters,
    read_clusters,
    study_clusters,
    write_clusters,
)
from heedful.protocol.clusters import NO_CLUSTERS, QuestionCluster
from heedful.protocol.lock import read_lock
from heedful.protocol.setup import prepare
from heedful.protocol.workflow import fit_study, record, side_table, verify_lock
from heedful.protocol.workspace import open_workspace, read_json, write_json
from heedful.types import digest_of
from tests.making import PreparedStudy
from tests.protocol.shelves import QUICK, nobody, shelf_model, written


def with_copies(folder: Path) -> Path:
    """The shelves, with fit shelf 3 asked again."""
    study = written(folder, QUICK)
    file = folder / "fit.jsonl"
    again = {"id": "again", "question": "what is on shelf 3", "answer": "item3"}
    file.write_text(file.read_text() + json.dumps(again) + "\n")
    return study


def test_recording_finds_the_clusters_and_the_tables_of_a_study_have_them(tmp_path: Path) -> None:
    space = open_workspace(with_copies(tmp_path), tmp_path / "out")
    setup = prepare(space.study, None)
    assert read_clusters(space) == NO_CLUSTERS
    asyncio.run(record(space, setup, shelf_model(), "fit", nobody))
    assert read_clusters(space).clusters == (QuestionCluster(fit=("again", "s3")),)
    table = side_table(space, setup, "fit")
    assert (len(table), len(set(table.clusters))) == (61, 60)
    assert "s3" not in table.clusters, "the cluster is named by its first id"
    assert "shelf" not in space.clusters.read_text(), "the file has no texts"


def test_clusters_are_kept_until_the_questions_change(tmp_path: Path) -> None:
    study = with_copies(tmp_path)
    space = open_workspace(study, tmp_path / "out")
    found = study_clusters(space, prepare(space.study, None))
    write_json(space.clusters, {**read_json(space.clusters, ""), "near": 0.5})
    assert study_clusters(space, prepare(space.study, None)).near == 0.5, "not searched for again"
    written(tmp_path, QUICK)
    space = open_workspace(study, tmp_path / "out")
    assert study_clusters(space, prepare(space.study, None)).clusters == ()
    assert found.clusters


def test_an_edited_file_breaks_the_lock(locked: PreparedStudy) -> None:
    space, setup = locked
    lock = read_lock(space.lock)
    assert locked_clusters(space, lock).digest == lock.clusters
    fields = read_json(space.clusters, "")
    write_json(space.clusters, {**fields, "clusters": [{"fit": ["s1", "s2"], "test": []}]})
    with pytest.raises(LockError, match=r"clusters\.json changed since"):
        asyncio.run(verify_lock(space, setup, shelf_model()))
    space.clusters.unlink()
    with pytest.raises(LockError, match=r"clusters\.json changed since"):
        locked_clusters(space, lock)


def test_clusters_edited_after_the_fit_are_not_locked(tmp_path: Path) -> None:
    from heedful.protocol.workflow import lock_study

    space = open_workspace(written(tmp_path, QUICK), tmp_path / "out")
    setup, model = prepare(space.study, None), shelf_model()
    asyncio.run(record(space, setup, model, "fit", nobody))
    fit_study(space, setup)
    fields = read_json(space.clusters, "")
    write_json(space.clusters, {**fields, "clusters": [{"fit": ["s1", "s2"], "test": []}]})
    with pytest.raises(LockError, match="run heedful study fit again"):
        asyncio.run(lock_study(space, setup, model))


def test_a_lock_from_before_there_were_clusters_divides_its_fit_side_by_tasks(locked: PreparedStudy) -> None:
    space, setup = locked
    fields = read_json(space.lock, "")
    del fields["clusters"], fields["lock"]
    write_json(space.lock, {**fields, "lock": digest_of(fields)})
    added = write_clusters(space, setup)
    assert locked_clusters(space, read_lock(space.lock)) == added, "for the report"
    assert fit_clusters(space) == study_clusters(space, setup) == NO_CLUSTERS


def test_a_file_that_holds_something_else_is_named(tmp_path: Path) -> None:
    space = open_workspace(written(tmp_path, QUICK), tmp_path / "out")
    space.clusters.write_text('{"clusters": 3}')
    with pytest.raises(UsageError, match=r"clusters\.json is not a file of clusters.* run heedful study fit"):
        read_clusters(space)


def test_a_damaged_file_of_a_locked_study_can_only_be_restored(locked: PreparedStudy) -> None:
    locked[0].clusters.write_text('{"clusters": 3}')
    with pytest.raises(UsageError, match=r"restore the file, because the lock fixes it$"):
        read_clusters(locked[0])
