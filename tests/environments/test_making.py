"""Environments by name, ours and those of other packages."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.environments import EnvironmentOptions, make_environment
from heedful.errors import UsageError


def test_an_unknown_environment_is_named_with_those_that_exist() -> None:
    with pytest.raises(UsageError, match="webshop, scienceworld, textworld_express"):
        make_environment("chess", EnvironmentOptions())


@pytest.mark.parametrize("name", ["webshop", "scienceworld", "textworld_express"])
def test_an_option_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"the options of the environment {name} are wrong"):
        make_environment(name, EnvironmentOptions(options={"colour": "red"}))


PLUGIN = """
from heedful import ScriptedModel
from tests.agents.toy_world import BoxWorld, walker


def boxes(options):
    assert options.options == {"size": 3}
    return BoxWorld()


def broken(options):
    return "not a world"


def model(options):
    return ScriptedModel(script=walker)
"""
POINTS = """
[heedful.environments]
boxes = my_worlds:boxes
broken = my_worlds:broken
[heedful.models]
walk = my_worlds:model
"""


def test_the_environment_of_another_package_is_played_by_name(tmp_path: Path) -> None:
    (tmp_path / "my_worlds.py").write_text(PLUGIN)
    info = tmp_path / "my_worlds-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-worlds\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(tmp_path), str(root / "src"), str(root)])

    def agent(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "heedful", "agent", "run", *words, "--arm", "never", "--url", "walk:"],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": paths, "XDG_DATA_HOME": str(tmp_path)},
            check=False,
        )

    done = agent("boxes", "--goal", "2", "--option", "size=3", "--json")
    assert done.returncode == 0, done.stderr
    played = json.loads(done.stdout)
    assert (played["end"], played["score"], len(played["steps"])) == ("done", 1.0, 4)
    refused = agent("broken")
    assert refused.returncode == 2
    assert "it made a str, which is not a Environment" in refused.stderr
