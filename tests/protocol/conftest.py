"""Studies that several tests begin from."""

import shutil
from pathlib import Path

import pytest

from heedful.protocol.setup import prepare
from heedful.protocol.workspace import open_workspace
from tests.making import PreparedStudy
from tests.protocol.shelves import QUICK, STUDY, shelf_model, through_lock, written


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return written(tmp_path, STUDY)


@pytest.fixture(scope="package")
def once_locked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("locked")
    through_lock(written(folder, QUICK), shelf_model())
    return folder


@pytest.fixture
def locked(once_locked: Path, tmp_path: Path) -> PreparedStudy:
    """A locked study of its own for each test."""
    shutil.copytree(once_locked, tmp_path / "copy")
    space = open_workspace(tmp_path / "copy" / "out", None)
    return space, prepare(space.study, None)
