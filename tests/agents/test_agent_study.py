"""Agent study files."""

from pathlib import Path

import pytest

from heedful.agents.agent_study import read_agent_study, refuse_shared_episodes, study_example
from heedful.agents.example import solved_example
from heedful.agents.step_task import ActingSettings
from heedful.environments.making import ENVIRONMENTS
from heedful.errors import LeakError, UsageError, WorldError
from tests.agents.studies import box_setup
from tests.agents.toy_world import BoxWorld

STUDIES = sorted((Path(__file__).parents[2] / "studies" / "agents").glob("*.toml"))


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_a_study_file_of_ours_can_be_read(file: Path) -> None:
    study = read_agent_study(file)
    assert study.environment in ENVIRONMENTS
    assert study.episodes.test >= 30
    assert study.acting.steps == study.act.steps


def test_there_is_a_study_of_every_world() -> None:
    assert {read_agent_study(file).environment for file in STUDIES} == set(ENVIRONMENTS)


def test_the_example_of_a_study_is_made_once_and_read_again(tmp_path: Path) -> None:
    study, file = box_setup().study, tmp_path / "example.json"
    turns = study_example(file, BoxWorld(), study)
    assert turns[-1].content.startswith("open ")
    stored = file.read_text().replace("go east", "go far east")
    file.write_text(stored)
    assert study_example(file, BoxWorld(), study)[1].content == "go far east"
    file.write_text('{"turns": [{"content": 7}]}')
    with pytest.raises(UsageError, match="not the example of a study"):
        study_example(file, BoxWorld(), study)


def test_an_episode_on_two_sides_is_refused() -> None:
    refuse_shared_episodes(BoxWorld(), {"fit": (200, 201), "test": (0, 1)})
    for asked in ({"fit": (200, 0), "test": (0, 1)}, {"fit": (200,), "test": (100,)}):
        with pytest.raises(LeakError, match="1 of the episodes are on two sides"):
            refuse_shared_episodes(BoxWorld(), asked)  # type: ignore[arg-type]


def test_a_world_whose_solutions_fail_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorldError, match="failed at the search for an example: RuntimeError"):
        study_example(tmp_path / "example.json", BoxWorld(fails_at=1), box_setup().study)


def test_a_study_file_without_slots_plays_one_episode_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text('name = "s"\nenvironment = "boxes"\nbank = "b"\n[model]\nurl = "http://127.0.0.1:1/v1"\n')
    assert (read_agent_study(file).model.slots, read_agent_study(file).model.context) == (1, 4096)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('name = "../evil"', "cannot be named '../evil'"),
        ('name = ""', "cannot be named ''"),
        ('name = "s"\nfit = {margins = [inf]}', "must be a finite number"),
        ('name = "s"\nrecall = {threshold = 5.0}', "is wrong"),
        ('name = "s"\nmodel = {model = "m"}', r"\[model\] model has no effect on the embedded model"),
        ('name = "s"\nmodel = {url = "http://h/v1", context = 9}', r"\[model\] context has no effect on an"),
        ('name = "s"\nrecall = {method = "bm25", threshold = 0.3}', r"\[recall\] threshold has no effect"),
    ],
)
def test_a_study_file_that_cannot_work_is_refused(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "study.toml"
    file.write_text(f'environment = "boxes"\nbank = "b"\n{line}\n')
    with pytest.raises(UsageError, match=said):
        read_agent_study(file)


def test_an_environment_without_solutions_has_no_example() -> None:
    class Mute:
        def __init__(self) -> None:
            self.world = BoxWorld()
            self.spec, self.seeds, self.close = self.world.spec, self.world.seeds, self.world.close
            self.reset, self.step = self.world.reset, self.world.step

    assert solved_example(Mute(), ActingSettings()) == ()
