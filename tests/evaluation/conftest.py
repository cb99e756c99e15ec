"""A study that several tests look at, built once."""

import pytest

from heedful.protocol.workspace import Workspace
from tests.evaluation.making import make_study


@pytest.fixture(scope="package")
def study(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Two banks, a retry and a vote; the test side opened once."""
    return make_study(tmp_path_factory.mktemp("evaluation") / "study")
