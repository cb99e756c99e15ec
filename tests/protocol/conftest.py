"""Studies that several tests begin from."""

import shutil

import pytest

from heedful.protocol.setup import prepare
from heedful.protocol.workspace import open_workspace
from tests.protocol.shelves import QUICK, STUDY, shelf_model, through_lock, written


@pytest.fixture
def study(tmp_path):
    return written(tmp_path, STUDY)


@pytest.fixture(scope="package")
def once_locked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("locked")
    through_lock(written(folder, QUICK), shelf_model())
    return folder


@pytest.fixture
def locked(once_locked, tmp_path):
    """A locked study of its own for each test."""
    shutil.copytree(once_locked, tmp_path / "copy")
    space = open_workspace(tmp_path / "copy" / "out", None)
    return space, prepare(space.study, None)
