"""Evidence from the branches of an agent study."""

from dataclasses import replace
from pathlib import Path

import pytest

from heedful import arms
from heedful.agents.agent_arms import shadow_policy
from heedful.agents.agent_evidence import branch_evidence, is_agent_study, read_agent_evidence
from heedful.agents.agent_fit import BRANCH, SHADOW
from heedful.agents.agent_workspace import AgentFolder
from heedful.agents.episode_record import EpisodeRecord
from heedful.errors import UsageError
from heedful.protocol.line_file import pack
from tests.agents.making import BLUE_HINT, played


def shadow(seed: int) -> EpisodeRecord:
    """An episode with memory in the shadow; the note proposes the blue box at its last step."""
    return replace(played(shadow_policy(), seed=seed), side="fit", arm=SHADOW)


def branch(base: EpisodeRecord) -> EpisodeRecord:
    before = tuple(step.action for step in base.steps[:-1])
    script = (*before, base.steps[-1].second_action)
    return replace(played(arms.never(), seed=base.seed, script=script), side="fit", arm=BRANCH)


def test_a_branch_that_ends_higher_is_a_help_and_one_that_ends_lower_a_hurt() -> None:
    blue, red = shadow(1), shadow(2)
    evidence = list(branch_evidence([blue, red, branch(blue), branch(red)]))
    assert [(seen.entry, seen.task, seen.utility) for seen in evidence] == [
        (BLUE_HINT.id, "1", 1.0),
        (BLUE_HINT.id, "2", -1.0),
    ]
    assert {seen.version for seen in evidence} == {BLUE_HINT.digest}


def test_only_sound_branches_of_the_fit_side_count() -> None:
    base = shadow(1)
    other = branch(base)
    assert not list(branch_evidence([base]))
    assert not list(branch_evidence([other]))
    assert not list(branch_evidence([base, replace(other, side="test")]))
    assert not list(branch_evidence([base, replace(other, end="model")]))


def test_a_packed_study_is_still_a_study_of_agents(tmp_path: Path) -> None:
    folder = AgentFolder(tmp_path)
    assert not is_agent_study(folder)
    folder.episodes.write_text("{}\n")
    pack(folder.episodes)
    assert is_agent_study(folder)


def test_a_study_without_branches_is_refused(tmp_path: Path) -> None:
    (tmp_path / "episodes.jsonl").write_text("")
    with pytest.raises(UsageError, match="has no branches"):
        read_agent_evidence(AgentFolder(tmp_path))
