"""The steps of an agent study: fit, lock, test."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from heedful.agents.agent_arms import fixed_arms
from heedful.agents.agent_fit import THRESHOLD, AgentFit, fit_agents
from heedful.agents.agent_lock import (
    AgentLock,
    make_agent_lock,
    read_agent_lock,
    read_locked_fit,
    refuse_moved_agents,
    write_agent_lock,
)
from heedful.agents.agent_study import AgentSetup
from heedful.agents.agent_workspace import AgentFolder, open_files
from heedful.agents.playing import EpisodeRunner, OnStage, in_stage, jobs_of
from heedful.decisions import policy_fields
from heedful.ports import Model
from heedful.protocol.workspace import write_json
from heedful.types import Policy


async def run_agent_study(
    folder: AgentFolder, setup: AgentSetup, model: Model, tell: OnStage, *, retry_failed: bool = False
) -> AgentLock:
    """Fit and lock unless the study is locked, then play the test side."""
    with open_files(folder) as files:
        runner = EpisodeRunner(setup=setup, files=files, model=model, retry_failed=retry_failed)
        if folder.lock.exists():
            lock = read_agent_lock(folder.lock)
            refuse_moved_agents(lock, setup, model.traits)
            read_locked_fit(folder.fit, lock)
        else:
            fit = await fit_agents(runner, tell)
            fields = msgspec.to_builtins(fit_fields(fit))
            write_json(folder.fit, fields)
            at = datetime.now(UTC).isoformat(timespec="seconds")
            lock = make_agent_lock(setup, model.traits, files, study_arms(fit), fields, at)
            write_agent_lock(folder.lock, lock)
        jobs = jobs_of("test", lock.test_arms(), setup.seeds["test"])
        await runner.play(jobs, in_stage(tell, "test side"))
    return lock


def study_arms(fit: AgentFit) -> dict[str, Policy]:
    """The arms that are played on the test side."""
    threshold = fit.best[THRESHOLD]
    return {**fixed_arms(threshold.budget, threshold.threshold), **fit.best}


def fit_fields(fit: AgentFit) -> dict[str, Any]:
    """A fit as JSON; infinite thresholds become words."""
    return {
        "main": fit.main,
        "best": {family: policy_fields(policy) for family, policy in fit.best.items()},
        "scores": [
            {
                "family": score.family,
                "threshold": policy_fields(score.policy)["threshold"],
                "margins": score.policy.margins,
                "budget": msgspec.to_builtins(score.policy.budget),
                "score": score.score,
                "calls": score.calls,
                "objective": score.objective,
            }
            for score in fit.scores
        ],
        "branches": msgspec.to_builtins(fit.branches),
        "recalled": fit.recalled,
        "notes": list(fit.notes),
    }
