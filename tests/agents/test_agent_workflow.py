"""A whole study of the toy world: fit, lock, test, report, resume."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heedful.agents.agent_fit import SHADOW, VALUE
from heedful.agents.agent_lock import read_agent_lock
from heedful.agents.agent_report import write_agent_report
from heedful.agents.agent_study import AgentSetup
from heedful.agents.agent_workflow import run_agent_study
from heedful.agents.agent_workspace import AgentFolder
from heedful.agents.episode_record import EpisodeRecord
from heedful.agents.row_file import RowFile
from heedful.errors import LockError, ModelError, UsageError
from heedful.models.scripted import Reply, ScriptedModel
from heedful.ports import Model
from heedful.types import Prompt
from tests.agents.studies import box_setup
from tests.agents.toy_world import BoxWorld, scripted, walker

ROOT = Path(__file__).parents[2]


def run(folder: Path, setup: AgentSetup, model: Model, **more: Any) -> AgentFolder:
    place = AgentFolder(folder)
    asyncio.run(run_agent_study(place, setup, model, lambda stage, now: None, **more))
    return place


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[AgentFolder, ScriptedModel]:
    model = scripted()
    return run(tmp_path_factory.mktemp("study"), box_setup(), model), model


def test_every_arm_plays_every_test_episode(finished: tuple[AgentFolder, ScriptedModel]) -> None:
    rows = [row for row in RowFile(finished[0].episodes, EpisodeRecord).rows if row.side == "test"]
    arms = {"no memory", "retry", "always", "fixed budget", "threshold", VALUE}
    assert {(row.arm, row.seed) for row in rows} == {(arm, seed) for arm in arms for seed in range(8)}


def test_memory_helps_and_the_report_has_the_fields_that_scripts_rely_on(
    finished: tuple[AgentFolder, ScriptedModel],
) -> None:
    summary = write_agent_report(finished[0], {}).summary
    assert summary["environment"] == "boxes"
    assert summary["episodes"] == 8
    wanted = {
        "success",
        "score",
        "calls",
        "helps",
        "hurts",
        "har",
        "ltr",
        "tr",
        "routed",
        "accepted",
        "invalid",
    }
    assert all(wanted <= set(arm) for arm in summary["arms"].values())
    assert set(summary["delta"]) == {"success", "score", "calls"}
    assert set(summary["delta"]["score"]) == {"value", "low", "high"}
    main, base = summary["arms"][summary["main"]], summary["arms"]["no memory"]
    assert base["score"] == 0.5
    assert main["score"] > base["score"]
    assert main["helps"] == round(8 * (main["score"] - base["score"])) > 0
    assert summary["arms"]["retry"]["score"] == base["score"]
    assert main["calls"] < summary["arms"]["retry"]["calls"] + 3


def test_the_report_is_rebuilt_byte_for_byte_and_without_texts_and_decodes(
    finished: tuple[AgentFolder, ScriptedModel], tmp_path: Path
) -> None:
    place = finished[0]
    write_agent_report(place, {})
    names = ("report.html", "report.md", "report.json", "traces.html")
    before = {name: (place.folder / name).read_bytes() for name in names}
    write_agent_report(place, {})
    assert {name: (place.folder / name).read_bytes() for name in names} == before
    for name in ("episodes.jsonl", "lock.json", "fit.json"):
        (tmp_path / name).write_bytes((place.folder / name).read_bytes())
    write_agent_report(AgentFolder(tmp_path), {})
    assert (tmp_path / "report.json").read_bytes() == before["report.json"]
    assert b"the text is not stored" in (tmp_path / "traces.html").read_bytes()


def test_arms_share_the_decodes_before_they_part(finished: tuple[AgentFolder, ScriptedModel]) -> None:
    place, model = finished
    calls = sum(row.calls for row in RowFile(place.episodes, EpisodeRecord).rows)
    assert len({prompt.digest for prompt in model.prompts}) == len(model.prompts) < calls / 2


def test_the_branches_show_what_memory_would_have_changed(
    finished: tuple[AgentFolder, ScriptedModel],
) -> None:
    fit = json.loads(finished[0].fit.read_text())
    assert {(branch["first"], branch["second"]) for branch in fit["branches"]} >= {(0.0, 1.0)}
    assert fit["recalled"] == 1.0
    assert {score["family"] for score in fit["scores"]} == {"always", "threshold", VALUE}


def test_a_finished_study_is_not_played_again(finished: tuple[AgentFolder, ScriptedModel]) -> None:
    idle = ScriptedModel(script={})
    before = finished[0].episodes.read_bytes()
    run(finished[0].folder, box_setup(), idle)
    assert (idle.prompts, finished[0].episodes.read_bytes()) == ([], before)


def test_a_study_that_changed_after_its_lock_is_refused(finished: tuple[AgentFolder, ScriptedModel]) -> None:
    with pytest.raises(LockError, match="episodes changed since"):
        run(finished[0].folder, box_setup(test=7), scripted())


def test_an_edited_lock_is_refused(finished: tuple[AgentFolder, ScriptedModel], tmp_path: Path) -> None:
    edited = tmp_path / "lock.json"
    edited.write_text(finished[0].lock.read_text().replace('"main": "', '"main": "x'))
    with pytest.raises(LockError, match="was edited"):
        read_agent_lock(edited)


def test_an_edited_or_missing_fit_is_refused(
    finished: tuple[AgentFolder, ScriptedModel], tmp_path: Path
) -> None:
    for name in ("episodes.jsonl", "lock.json", "fit.json"):
        shutil.copyfile(finished[0].folder / name, tmp_path / name)
    place = AgentFolder(tmp_path)
    fit = json.loads(place.fit.read_text())
    fit["scores"][0]["score"] = 0.99
    place.fit.write_text(json.dumps(fit))
    with pytest.raises(LockError, match=r"fit\.json was edited after the lock of boxes"):
        write_agent_report(place, {})
    with pytest.raises(LockError, match=r"fit\.json was edited"):
        run(tmp_path, box_setup(), scripted())
    place.fit.unlink()
    with pytest.raises(UsageError, match="restore it"):
        write_agent_report(place, {})


def test_the_code_of_a_plugged_in_environment_is_locked(tmp_path: Path) -> None:
    module = tmp_path / "my_world.py"
    module.write_text("REWARD = 1.0\n")
    setup = replace(box_setup(test=2, fit=6), plugin=module)
    run(tmp_path / "study", setup, scripted())
    module.write_text("REWARD = 0.5\n")
    with pytest.raises(LockError, match=r"plug-in my_world\.py changed since"):
        run(tmp_path / "study", setup, scripted())


def test_a_test_side_of_failures_only_names_the_error_and_the_option(
    finished: tuple[AgentFolder, ScriptedModel], tmp_path: Path
) -> None:
    for name in ("lock.json", "fit.json"):
        shutil.copyfile(finished[0].folder / name, tmp_path / name)
    place = AgentFolder(tmp_path)
    rows = RowFile(finished[0].episodes, EpisodeRecord).rows
    with RowFile(place.episodes, EpisodeRecord) as file:
        for row in rows:
            file.append(replace(row, end="model", error="no answer"))
    with pytest.raises(UsageError, match=r"failed, the last one with: no answer; .* --retry-failed"):
        write_agent_report(place, {})
    place.episodes.write_text("{}\n")
    with pytest.raises(
        UsageError, match=r"no test episode in episodes\.jsonl can be read \(damaged rows: 1\)"
    ):
        write_agent_report(place, {})


def test_the_report_marks_the_chosen_policies_and_links_the_traces(
    finished: tuple[AgentFolder, ScriptedModel],
) -> None:
    write_agent_report(finished[0], {})
    text = (finished[0].folder / "report.md").read_text()
    fit_side = text.partition("## Fit side")[2]
    assert fit_side.count("| **threshold** |") == fit_side.count("| **value** |") == 1
    page = (finished[0].folder / "report.html").read_text()
    main = read_agent_lock(finished[0].lock).main
    assert f'<a href="traces.html">traces of {main}</a>' in page


def test_one_failed_episode_is_recorded_and_the_study_goes_on(tmp_path: Path) -> None:
    class Haunted(BoxWorld):
        def step(self, action: str) -> Any:
            if self._seed == 3:
                raise OSError("boo")
            return super().step(action)

    setup = replace(box_setup(test=5, fit=6), make=Haunted)
    place = run(tmp_path, setup, scripted())
    rows = [row for row in RowFile(place.episodes, EpisodeRecord).rows if row.side == "test"]
    assert {row.seed for row in rows if row.failed} == {3}
    assert write_agent_report(place, {}).summary["episodes"] == 4
    run(tmp_path, replace(setup, make=BoxWorld), scripted(), retry_failed=True)
    assert write_agent_report(place, {}).summary["episodes"] == 5


def test_an_endpoint_that_is_down_stops_the_study_and_loses_nothing(tmp_path: Path) -> None:
    answered = iter(range(8))

    def flaky(prompt: Prompt) -> Reply:
        return ModelError("down") if next(answered, None) is None else walker(prompt)

    with pytest.raises(ModelError, match="5 episodes failed in a row, the last one with: down"):
        run(tmp_path, box_setup(test=2, fit=8), scripted(flaky))
    kept = RowFile(AgentFolder(tmp_path).episodes, EpisodeRecord).rows
    assert [(row.seed, row.failed) for row in kept] == [(200, False)]
    place = run(tmp_path, box_setup(test=2, fit=8), scripted())
    assert write_agent_report(place, {}).summary["episodes"] == 2


def test_a_report_before_the_test_side_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="run heedful agent study first"):
        write_agent_report(AgentFolder(tmp_path), {})


CHILD = """
import asyncio, sys
from pathlib import Path
from heedful.agents.agent_workflow import run_agent_study
from heedful.agents.agent_workspace import AgentFolder
from tests.agents.studies import box_setup
from tests.agents.toy_world import scripted, walker

def slow(prompt):
    print("decode", flush=True)
    sys.stdin.readline()
    return walker(prompt)

folder = AgentFolder(Path(sys.argv[1]))
asyncio.run(run_agent_study(folder, box_setup(test=3, fit=6), scripted(slow), lambda stage, now: None))
"""


def test_nothing_is_lost_on_kill_9(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole", box_setup(test=3, fit=6), scripted())
    killed = tmp_path / "killed"
    for decodes in (3, 9):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(killed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        for _ in range(decodes):
            assert child.stdout.readline() == "decode\n"
            child.stdin.write("\n")
            child.stdin.flush()
        assert child.stdout.readline() == "decode\n"
        child.send_signal(signal.SIGKILL)
        child.communicate()
    model = scripted()
    run(killed, box_setup(test=3, fit=6), model)
    decoded = len(RowFile(whole.decodes, dict).rows)
    assert len(model.prompts) == decoded - 3 - 9
    summaries = [write_agent_report(place, {}).summary for place in (whole, AgentFolder(killed))]
    assert summaries[0] == summaries[1]
    assert SHADOW in {row.arm for row in RowFile(whole.episodes, EpisodeRecord).rows}
