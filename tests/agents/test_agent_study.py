"""Agent study files."""

from pathlib import Path

import pytest

from heedful.agents.agent_study import read_agent_study
from heedful.environments.making import ENVIRONMENTS

STUDIES = sorted((Path(__file__).parents[2] / "studies" / "agents").glob("*.toml"))


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_a_study_file_of_ours_can_be_read(file: Path) -> None:
    study = read_agent_study(file)
    assert study.environment in ENVIRONMENTS
    assert study.episodes.test >= 30
    assert study.acting.steps == study.act.steps


def test_there_is_a_study_of_every_world() -> None:
    assert {read_agent_study(file).environment for file in STUDIES} == set(ENVIRONMENTS)
