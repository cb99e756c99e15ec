"""A study's folder."""

import shutil
from pathlib import Path

import pytest

from heedful import (
    UsageError,
)
from heedful.protocol.setup import prepare
from heedful.protocol.workspace import open_workspace
from tests.making import PreparedStudy


def test_a_folder_with_another_locked_study_is_left_alone(locked: PreparedStudy, study: Path) -> None:
    space, _ = locked
    with pytest.raises(UsageError, match="a different locked study"):
        open_workspace(study, space.folder)


def test_a_locked_folder_takes_no_other_bank(once_locked: Path, tmp_path: Path) -> None:
    shutil.copytree(once_locked, tmp_path / "copy")
    file, folder = tmp_path / "copy" / "desk.toml", tmp_path / "copy" / "out"
    assert open_workspace(file, folder).folder == folder
    notes = tmp_path / "copy" / "notes.txt"
    notes.write_text(notes.read_text() + "\nOne more.")
    with pytest.raises(UsageError, match=r"notes\.txt differs from the file that was locked"):
        open_workspace(file, folder)
    assert "One more." not in (folder / "notes.txt").read_text()


def test_a_study_may_be_kept_where_its_file_is(study: Path) -> None:
    space = open_workspace(study, study.parent)
    assert space.study.read_text() == study.read_text()
    assert prepare(space.study, None).study.name == "desk"


@pytest.mark.parametrize("bank", ["/elsewhere/notes.txt", "../notes.txt"])
def test_a_bank_outside_the_studys_folder_is_refused(study: Path, tmp_path: Path, bank: str) -> None:
    study.write_text(study.read_text().replace('bank = "notes.txt"', f'bank = "{bank}"'))
    with pytest.raises(UsageError, match="is not in the study file's folder"):
        open_workspace(study, tmp_path / "out")
