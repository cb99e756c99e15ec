"""Choose policies on the fit side: memory in every prompt, a grid of thresholds, a value policy."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from heedful import arms
from heedful.agents.agent_arms import MEMORY, shadow_policy, threshold_policy
from heedful.agents.agent_study import AgentFitSettings
from heedful.agents.episode_record import EpisodeRecord, StepRecord
from heedful.agents.guards import AGENT_GUARDS
from heedful.agents.play import Arm
from heedful.agents.playing import EpisodeJob, EpisodeRunner, OnStage, in_stage, jobs_of
from heedful.errors import ModelError, UsageError, WorldError
from heedful.protocol.value_fit import UNFITTED, fit_trees
from heedful.protocol.value_replay import RowViews, record_view
from heedful.types import Budget, Policy, ValueRule

SHADOW, BRANCH = "shadow", "branch"
ALWAYS, THRESHOLD, VALUE = "always", "threshold", "value"
LEAST_TURNS = 5
"""A value policy is fitted only if the branches changed the score of at least this many episodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A step at which memory proposed another action, and the score of finishing the episode with it."""

    seed: int
    step: int
    first: float
    """The final score after the first pass's action."""
    second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyScore:
    """A policy with its result on the fit side."""

    family: str
    policy: Policy
    score: float
    calls: float
    """Per step."""
    objective: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFit:
    """What was chosen on the fit side."""

    scores: tuple[PolicyScore, ...]
    branches: tuple[Branch, ...]
    best: Mapping[str, Policy]
    """The best policy of each family."""
    main: str
    """The family with the best policy: memory in every prompt, where the fit side prefers that."""
    recalled: float
    """The share of steps at which memory had anything to recall."""
    notes: tuple[str, ...] = ()


async def fit_agents(runner: EpisodeRunner, tell: OnStage) -> AgentFit:
    """Play the fit side and choose a policy of each family."""
    setup = runner.setup
    settings, seeds = setup.study.fit, setup.seeds["fit"]
    shadow = Arm(name=SHADOW, policy=shadow_policy())
    first = jobs_of("fit", [shadow], seeds)
    _refuse_unsure(await runner.play(first[:1], lambda progress: None))
    episodes = await runner.play(first, in_stage(tell, "fit side, without memory"))
    _refuse_failed(episodes)
    jobs = [job for episode in episodes for job in branch_jobs(episode, settings.branches)]
    finished = await runner.play(jobs, in_stage(tell, "fit side, branches"))
    branches = tuple(branches_of(episodes, finished))
    policies, notes = [(ALWAYS, arms.always(MEMORY)), *_grid(episodes, settings)], []
    rule = value_rule(episodes, branches, settings.cost, setup.study.seed)
    if rule is None:
        notes.append(_no_value(branches))
    else:
        policies += [(VALUE, value_policy(rule, budget)) for budget in _budgets(settings)]
    scores = []
    for number, (family, policy) in enumerate(policies, 1):
        stage = in_stage(tell, f"fit side, policy {number} of {len(policies)}")
        played = await runner.play(jobs_of("fit", [Arm(name=family, policy=policy)], seeds), stage)
        scores.append(_score(family, policy, played, settings.cost))
    return _chosen(scores, branches, recalled_share(episodes), tuple(notes))


def _refuse_unsure(episodes: Sequence[EpisodeRecord]) -> None:
    """Raise `UsageError` if an episode has steps but none with a confidence."""
    steps = [step for episode in episodes for step in episode.steps]
    if steps and all(step.confidence is None for step in steps):
        raise UsageError(
            "no step of the first fit episode has a confidence: an agent study needs a model that returns "
            "log-probs; heedful probe shows what an endpoint supports"
        )


def _refuse_failed(episodes: Sequence[EpisodeRecord]) -> None:
    """Raise an error with the last cause if every fit episode failed."""
    if all(episode.failed for episode in episodes):
        last = episodes[-1]
        kind = WorldError if last.end == "environment" else ModelError
        raise kind(
            f"every fit episode failed, the last one with: {last.error}; mend the cause and run the study "
            "again with --retry-failed"
        )


def branch_jobs(episode: EpisodeRecord, limit: int) -> Iterator[EpisodeJob]:
    """Finish an episode without memory from steps at which memory proposed another action."""
    turned = [at for at, step in enumerate(episode.steps) if differs(step)]
    spread = sorted({turned[place * len(turned) // limit] for place in range(limit)}) if turned else []
    before = tuple(step.action for step in episode.steps)
    for at in spread:
        script = (*before[:at], episode.steps[at].second_action)
        arm = Arm(name=BRANCH, policy=arms.never())
        yield EpisodeJob(side=episode.side, arm=arm, seed=episode.seed, script=script)


def differs(step: StepRecord) -> bool:
    """Whether memory proposed another valid action than the first pass."""
    return bool(step.second_action) and step.second_action != step.first_action


def branches_of(episodes: Sequence[EpisodeRecord], finished: Sequence[EpisodeRecord]) -> Iterator[Branch]:
    scores = {episode.seed: episode for episode in episodes}
    for branch in finished:
        base = scores[branch.seed]
        if not branch.failed and not base.failed:
            step = len(branch.script) - 1
            yield Branch(seed=branch.seed, step=step, first=base.score, second=branch.score)


def _grid(episodes: Sequence[EpisodeRecord], settings: AgentFitSettings) -> list[tuple[str, Policy]]:
    sure = [step.confidence for episode in episodes for step in episode.steps]
    known = [confidence for confidence in sure if confidence is not None]
    thresholds = sorted({float(np.quantile(known, share)) for share in settings.quantiles})
    cells = product(thresholds, settings.margins, _budgets(settings))
    return [(THRESHOLD, threshold_policy(threshold, margin, budget)) for threshold, margin, budget in cells]


def _budgets(settings: AgentFitSettings) -> list[Budget]:
    cells = product(settings.budgets, settings.cooldowns)
    return [Budget(passes=passes, cooldown=cooldown) for passes, cooldown in cells]


def value_rule(
    episodes: Sequence[EpisodeRecord], branches: Sequence[Branch], cost: float, seed: int
) -> ValueRule | None:
    """Estimators fitted on steps whose two continuations are known; None if too few of them differ.

    An action is right if finishing the episode with it scores no less than with the other action.
    """
    if sum(branch.first != branch.second for branch in branches) < LEAST_TURNS:
        return None
    rows, tasks = [], []
    known = {(branch.seed, branch.step): branch for branch in branches}
    for episode in episodes:
        for at, step in enumerate(episode.steps):
            branch = known.get((episode.seed, at))
            if step.candidates and step.candidates[-1].record.status == "decoded":
                if branch is None and differs(step):
                    continue
                rows.append(_row(step, branch))
                tasks.append(str(episode.seed))
    trees = fit_trees(rows, tasks, UNFITTED, seed, likeness=lambda: None)
    return ValueRule(trees=trees, costs=(1.0,), cost=cost)


def _row(step: StepRecord, branch: Branch | None) -> RowViews:
    views = {0: record_view(step.first), 1: record_view(step.candidates[-1].record)}
    if branch is None:
        return RowViews(views=views, right={0: True, 1: bool(step.second_action)})
    return RowViews(views=views, right={0: branch.first >= branch.second, 1: branch.second >= branch.first})


def value_policy(rule: ValueRule, budget: Budget) -> Policy:
    """Consult where the expected gain exceeds the cost; guards as in the threshold policy."""
    policy = Policy(sources=(MEMORY,), combine="value", value=rule, guards=AGENT_GUARDS)
    return replace(policy, budget=budget)


def _score(family: str, policy: Policy, played: Sequence[EpisodeRecord], cost: float) -> PolicyScore:
    sound = [episode for episode in played if not episode.failed]
    if not sound:
        raise UsageError("every fit episode failed; run the study again with --retry-failed")
    score = float(np.mean([episode.score for episode in sound]))
    steps = sum(len(episode.steps) for episode in sound)
    calls = sum(episode.calls for episode in sound) / max(1, steps)
    objective = score - cost * calls
    return PolicyScore(family=family, policy=policy, score=score, calls=calls, objective=objective)


def _chosen(
    scores: Sequence[PolicyScore], branches: tuple[Branch, ...], recalled: float, notes: tuple[str, ...]
) -> AgentFit:
    """The best policy of each family, ties to fewer calls, and the better family."""
    best: dict[str, PolicyScore] = {}
    for score in sorted(scores, key=lambda one: (-one.objective, one.calls)):
        best.setdefault(score.family, score)
    main = max(best, key=lambda family: best[family].objective)
    return AgentFit(
        scores=tuple(scores),
        branches=branches,
        best={family: score.policy for family, score in best.items()},
        main=main,
        recalled=recalled,
        notes=notes,
    )


def recalled_share(episodes: Sequence[EpisodeRecord]) -> float:
    """The share of consulted steps at which at least one entry was recalled."""
    asked = [step for episode in episodes for step in episode.steps if step.candidates]
    hit = sum(any(candidate.record.recalls for candidate in step.candidates) for step in asked)
    return hit / len(asked) if asked else 0.0


def _no_value(branches: Sequence[Branch]) -> str:
    turned = sum(branch.first != branch.second for branch in branches)
    return (
        f"No value policy: {turned} of {len(branches)} branches changed the final score, and fitting one "
        f"takes at least {LEAST_TURNS}."
    )
