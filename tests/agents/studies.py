"""A study of the toy world."""

from pathlib import Path

from heedful.agents.agent_study import (
    ActSettings,
    AgentFitSettings,
    AgentSetup,
    AgentStudy,
    EpisodeSettings,
    RecallSettings,
    memory_bank,
    memory_sources,
)
from heedful.agents.hints import gold_entries, pool_seeds
from heedful.memory.formats import write_entries
from heedful.protocol.study import ModelSettings
from tests.agents.toy_world import SIDES, BoxWorld

STUDY = """
name = "boxes"
environment = "boxes"
bank = "hints.jsonl"
[episodes]
fit = 6
test = 8
[recall]
method = "bm25"
[fit]
quantiles = [0.5]
budgets = [2]
cooldowns = [0]
"""


def box_setup(test: int = 8, fit: int = 12) -> AgentSetup:
    """The toy world with hints from its pool; bm25 recall needs no weights."""
    entries = gold_entries(BoxWorld(), pool_seeds(BoxWorld()), limit=60)
    recall = RecallSettings(method="bm25", limit=1)
    study = AgentStudy(
        name="boxes",
        environment="boxes",
        bank="hints.jsonl",
        model=ModelSettings(slots=1),
        episodes=EpisodeSettings(fit=fit, test=test),
        recall=recall,
        act=ActSettings(steps=12),
        fit=AgentFitSettings(quantiles=(0.5,), budgets=(2,), cooldowns=(0,)),
    )
    return AgentSetup(
        study=study,
        entries=tuple(entries),
        bank=memory_bank(entries, recall),
        seeds={"fit": tuple(SIDES["fit"][:fit]), "test": tuple(SIDES["test"][:test])},
        sources=memory_sources(entries, recall),
        make=BoxWorld,
        spec=dict(BoxWorld().spec),
    )


def write_box_study(folder: Path) -> Path:
    """The study file and its bank, as a user would write them."""
    entries = gold_entries(BoxWorld(), pool_seeds(BoxWorld()), limit=60)
    (folder / "hints.jsonl").write_text(write_entries(entries, "jsonl"))
    file = folder / "boxes.toml"
    file.write_text(STUDY)
    return file
