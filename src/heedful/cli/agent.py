"""`heedful agent`: episodes in an environment, and studies of them."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import (
    BankName,
    Json,
    ModelName,
    Store,
    Threads,
    Url,
    Weights,
    Workers,
    refuse_idle,
    refuse_idle_model_options,
)
from heedful.cli.output import counted, print_json, result, say
from heedful.errors import UsageError
from heedful.types import HintPlacement

if TYPE_CHECKING:
    from heedful.agents.agent_study import AgentSetup, RecallSettings
    from heedful.agents.episode_run import EpisodeRun
    from heedful.agents.play import StepView
    from heedful.agents.playing import PlayingProgress
    from heedful.agents.step_task import ActingSettings
    from heedful.environments.making import EnvironmentOptions, OptionValue
    from heedful.models.schemes import ModelOptions
    from heedful.ports import Environment, Model
    from heedful.types import Entry, Message, Policy

app = typer.Typer(
    help="Let an agent act in an environment under the control loop.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
World = Annotated[str, typer.Argument(help="webshop, scienceworld, textworld_express, or one of a plug-in.")]
Data = Annotated[Path | None, typer.Option(envvar="HEEDFUL_DATA", help="Folder of the benchmark data.")]
Option = Annotated[
    list[str] | None,
    typer.Option("--option", help="An option of the environment, NAME=VALUE.", show_default=False),
]
Example = Annotated[
    int, typer.Option(min=0, help="Begin prompts with a solved pool episode of at most this many steps.")
]
WITHOUT_MEMORY = ("never", "retry")
ARMS = ("never", "retry", "always", "fixed-budget", "threshold")
CONTEXT = 4096
EXAMPLE_STEPS = 6
SET_BY_A_STUDY = (
    *("bank", "arm", "threshold", "margin", "budget", "cooldown", "recall", "similarity", "limit", "steps"),
    *("placement", "example", "option", "url", "model", "weights", "threads", "store"),
)
"""Options of `run` that a locked study sets."""


@app.command()
def run(
    context: typer.Context,
    environment: World,
    goal: Annotated[
        int | None, typer.Option(help="Number of the episode [default: the first test episode].")
    ] = None,
    study: Annotated[
        Path | None, typer.Option(help="Folder of a locked study: act with its policy, bank and model.")
    ] = None,
    bank: BankName = "default",
    arm: Annotated[str, typer.Option(help=f"How memory is used: {', '.join(ARMS)}.")] = "threshold",
    threshold: Annotated[float, typer.Option(help="Consult memory below this confidence.")] = -0.1,
    margin: Annotated[float, typer.Option(help="Accept an action that is surer by this much.")] = 0.0,
    budget: Annotated[int, typer.Option(min=0, help="Maximum number of consultations.")] = 4,
    cooldown: Annotated[int, typer.Option(min=0, help="Steps to wait after a consultation.")] = 0,
    recall: Annotated[str, typer.Option(help="Recall method: dense, bm25, bm25_rerank.")] = "dense",
    similarity: Annotated[
        float, typer.Option(min=-1, max=1, help="Minimum cosine similarity of dense recall.")
    ] = 0.6,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of entries in a prompt.")] = 3,
    placement: Annotated[
        HintPlacement,
        typer.Option(help="Show hints whole, or their advice without its situation."),
    ] = "after",
    steps: Annotated[int, typer.Option(min=1, help="Maximum number of steps.")] = 20,
    branch: Annotated[
        bool, typer.Option("--branch", help="Finish the episode both ways where memory proposes a change.")
    ] = False,
    example: Example = EXAMPLE_STEPS,
    option: Option = None,
    data: Data = None,
    url: Url = None,
    model: ModelName = None,
    weights: Weights = "smollm2-135m",
    threads: Threads = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Play one episode and print it step by step."""
    from heedful.agents.agent_study import RecallSettings, memory_sources
    from heedful.agents.episode_run import EpisodeRun, play_once
    from heedful.agents.step_task import ActingSettings
    from heedful.agents.world_worker import close_world
    from heedful.environments.making import make_environment
    from heedful.models.schemes import ModelOptions

    if study is not None:
        refuse_idle(context, SET_BY_A_STUDY, "with --study, which sets it")
        play = _locked_run(study, environment, data)
    else:
        policy = _policy(arm, threshold, margin, budget, cooldown)
        _refuse_idle_options(context, arm, recall, bank, url)
        settings = RecallSettings(method=recall, threshold=similarity, limit=limit, placement=placement)
        entries = _entries(bank, store) if arm not in WITHOUT_MEMORY else []
        opened = _open_model(
            ModelOptions(
                url=url or "", model=model or "", weights=weights, threads=threads, slots=1, context=CONTEXT
            ),
            settings if entries else None,
        )
        acting = ActingSettings(steps=steps)
        world = make_environment(environment, _options(data, option))
        play = EpisodeRun(
            world=world,
            model=opened,
            arm=arm,
            policy=policy,
            sources=memory_sources(entries, settings),
            settings=acting,
            example=_example(world, acting, example),
        )
        if arm not in WITHOUT_MEMORY:
            _warn_of_memory(entries, bank, opened)
    try:
        watch = (lambda step: None) if json else _print_step
        seed = _first_test_episode(play.world) if goal is None else goal
        with redirect_stdout(sys.stderr) if json else nullcontext():  # an environment may print
            played = asyncio.run(play_once(replace(play, branch=branch), seed, watch))
    finally:
        close_world(play.world)
    if json:
        print_json(played.fields)
    else:
        for line in played.lines:
            result().print(line, markup=False, soft_wrap=True)
    if played.record.failed:
        raise typer.Exit(1)


@app.command()
def hints(
    context: typer.Context,
    environment: World,
    out: Annotated[Path, typer.Option(help="File to write the entries to.")] = Path("hints.jsonl"),
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of entries.")] = 200,
    failures: Annotated[
        int, typer.Option(min=0, help="Pool episodes to play; each failure becomes an entry.")
    ] = 0,
    failed: Annotated[
        Path | None, typer.Option(help="Failed steps of an earlier run, to build the same entries again.")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Maximum number of steps of a played episode.")] = 20,
    example: Example = EXAMPLE_STEPS,
    option: Option = None,
    data: Data = None,
    url: Url = None,
    model: ModelName = None,
    weights: Weights = "smollm2-135m",
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Build memory from pool episodes: fragments of solutions, and how failures could be avoided."""
    from heedful.agents.episode_run import write_hints
    from heedful.agents.hints import FailedStep
    from heedful.agents.play import Player
    from heedful.agents.step_task import ActingSettings
    from heedful.agents.world_worker import close_world
    from heedful.environments.making import make_environment
    from heedful.models.schemes import ModelOptions
    from heedful.protocol.workspace import read_json_lines

    if failures:
        refuse_idle_model_options(context, url)
    else:
        idle = ("steps", "example", "url", "model", "weights", "threads")
        refuse_idle(context, idle, "without --failures, because no episode is played")
    known = [step for _, step in read_json_lines(failed, FailedStep, "a failed step")] if failed else []
    world = make_environment(environment, _options(data, option))
    settings = ModelOptions(
        url=url or "", model=model or "", weights=weights, threads=threads, slots=1, context=CONTEXT
    )
    acting, player = ActingSettings(steps=steps), None
    try:
        if failures:
            turns = _example(world, acting, example)
            player = Player(model=_open_model(settings, None), settings=acting, example=turns)
        counts = asyncio.run(write_hints(world, out, limit, failures, player, say, known))
    finally:
        close_world(world)
    if not counts["entries"]:
        raise UsageError(
            f"no entry was built: {environment} has no pool episode whose solution reaches a score; it needs "
            "seeds('pool'), and gold(seed) with actions that lead to the goal"
        )
    if json:
        print_json({"file": str(out), **counts})
        return
    result().print(
        f"{counted(counts['entries'], 'entry', 'entries')} ({counts['failures']} from failures): {out}",
        markup=False,
        soft_wrap=True,
    )


@app.command()
def study(
    place: Annotated[Path, typer.Argument(help="A study file or the folder of a study.", metavar="STUDY")],
    data: Data = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the study [default: results/NAME].", show_default=False)
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Play failed episodes again.", show_default=False)
    ] = False,
    workers: Workers = None,
    json: Json = False,
) -> None:
    """Run the whole study: play the fit side, choose policies, lock, play the test side, report."""
    from heedful.agents.agent_study import prepare_agents
    from heedful.agents.agent_workflow import run_agent_study
    from heedful.agents.agent_workspace import open_agent_folder
    from heedful.extras import require

    require("study")
    folder, read = open_agent_folder(place, out)
    setup = prepare_agents(folder.folder, read, data)
    opened = _study_model(setup, workers)
    if folder.lock.exists():
        say(f"{folder.lock} exists: continuing with the locked study")
    asyncio.run(run_agent_study(folder, setup, opened, Progress(), retry_failed=retry_failed))
    _report(folder.folder, json)


@app.command()
def report(
    place: Annotated[Path, typer.Argument(help="The folder of a study.", metavar="DIR")], json: Json = False
) -> None:
    """Rebuild the report from episodes and lock: tables, figure and the trace viewer."""
    from heedful.extras import require

    require("study")
    _report(place, json)


def _report(place: Path, json: bool) -> None:
    from heedful.agents.agent_report import write_agent_report
    from heedful.agents.agent_workspace import open_agent_folder, read_entry_texts

    folder, read = open_agent_folder(place, None)
    written = write_agent_report(folder, read_entry_texts(folder, read))
    if json:
        print_json(written.summary)
        return
    result().print(written.text, markup=False, soft_wrap=True)
    say(f"full report: {folder.folder / 'report.html'}; traces: {folder.folder / 'traces.html'}")


def _first_test_episode(world: "Environment") -> int:
    seeds = world.seeds("test")
    if not seeds:
        raise UsageError("the environment lists no test episodes: name one with --goal")
    return seeds[0]


def _locked_run(place: Path, environment: str, data: Path | None) -> "EpisodeRun":
    """What a locked study acts with; what changed since the lock is named on stderr."""
    from heedful.agents.agent_lock import moved_since, read_agent_lock
    from heedful.agents.agent_study import prepare_agents
    from heedful.agents.agent_workspace import open_agent_folder
    from heedful.agents.episode_run import EpisodeRun
    from heedful.decisions import read_policy

    folder, read = open_agent_folder(place, None)
    if read.environment != environment:
        raise UsageError(f"{place} is a study of {read.environment}, not of {environment}: name that one")
    lock = read_agent_lock(folder.lock)
    setup = prepare_agents(folder.folder, read, data)
    model = _study_model(setup)
    if changed := moved_since(lock, setup, model.traits):
        say(f"changed since {place} was locked: {', '.join(changed)}")
    return EpisodeRun(
        world=setup.make(),
        model=model,
        arm=lock.main,
        policy=read_policy(lock.arms[lock.main]),
        sources=setup.sources,
        settings=read.acting,
        example=setup.example,
    )


def _example(world: "Environment", acting: "ActingSettings", steps: int) -> "tuple[Message, ...]":
    from heedful.agents.agent_study import EXAMPLE_PATIENCE
    from heedful.agents.example import solved_example
    from heedful.agents.world_worker import watched

    patience = EXAMPLE_PATIENCE * acting.world_patience
    search = watched(lambda: solved_example(world, acting, steps), "the search for an example", patience)
    return asyncio.run(search)


def _refuse_idle_options(context: typer.Context, arm: str, recall: str, bank: str, url: str | None) -> None:
    """Refuse options that the arm, the recall method, the bank or the endpoint ignores."""
    refuse_idle_model_options(context, url)
    if arm in WITHOUT_MEMORY:
        idle = ("bank", "recall", "similarity", "limit", "placement", "store")
        refuse_idle(context, idle, f"with --arm {arm}")
    if arm not in ("retry", "threshold"):
        refuse_idle(context, ("threshold", "budget", "cooldown"), f"with --arm {arm}")
    if arm != "threshold":
        refuse_idle(context, ("margin",), f"with --arm {arm}")
    if recall == "bm25":
        refuse_idle(context, ("similarity",), "with --recall bm25")
    if Path(bank).is_file():
        refuse_idle(context, ("store",), "with --bank FILE, which is not in a store")


def _warn_of_memory(entries: "Sequence[Entry]", bank: str, model: "Model") -> None:
    """Say on stderr why memory cannot change anything, if so."""
    if not entries:
        say(
            f"bank {bank!r} has no entries, so nothing can be recalled: build some with heedful agent hints, "
            "and name the file with --bank"
        )
    if not model.traits.logprobs:
        say("the model returns no log-probs, so every confidence is unknown and memory is never consulted")


def _policy(arm: str, threshold: float, margin: float, budget: int, cooldown: int) -> "Policy":
    from heedful.agents.agent_arms import fixed_arms, threshold_policy
    from heedful.types import Budget

    limits = Budget(passes=budget, cooldown=cooldown)
    fixed = fixed_arms(limits, threshold)
    policies = dict(zip(ARMS, fixed.values(), strict=False))
    policies["threshold"] = threshold_policy(threshold, margin, limits)
    if arm not in policies:
        raise UsageError(f"unknown arm {arm!r}; choose one of {', '.join(ARMS)}")
    return policies[arm]


def _options(data: Path | None, given: Sequence[str] | None) -> "EnvironmentOptions":
    from heedful.environments.making import EnvironmentOptions

    options: dict[str, OptionValue] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--option {text!r} is not NAME=VALUE")
        options[name] = int(value) if value.isdigit() else value
    return EnvironmentOptions(data=data, options=options)


def _entries(bank: str, store: str | None) -> "list[Entry]":
    """The entries of a file, or of a bank in the store; the bank `default` may be missing."""
    from heedful.cli.resources import require_bank
    from heedful.memory.formats import read_entries
    from heedful.memory.storage import open_storage

    if Path(bank).is_file():
        return list(read_entries(Path(bank))[0])
    if Path(bank).suffix or Path(bank).name != bank:
        raise UsageError(f"there is no file {bank}: give a file of entries, or the name of a bank")
    opened = open_storage(store)
    if bank != "default":
        require_bank(opened, bank)
    return list(asyncio.run(opened.entries(bank)))


def _open_model(options: "ModelOptions", recall: "RecallSettings | None") -> "Model":
    from heedful.cli.resources import open_model, pull_weights

    if recall is not None and recall.method != "bm25":
        pull_weights("all-minilm-l6-v2")
    return open_model(options)


def _study_model(setup: "AgentSetup", workers: str | None = None) -> "Model":
    from heedful.cli.resources import pull_weights
    from heedful.models.catalogue import CATALOGUE
    from heedful.protocol.workers import recording_model

    if setup.study.recall.method != "bm25":
        pull_weights("all-minilm-l6-v2")
    settings = setup.study.model
    if not settings.url and settings.weights in CATALOGUE:
        pull_weights(settings.weights)
    return recording_model(settings, workers)


def _print_step(step: "StepView") -> None:
    from heedful.agents.episode_run import step_lines

    for line in step_lines(step):
        result().print(line, markup=False, soft_wrap=True)


class Progress:
    """Prints a line for every tenth of a stage."""

    def __init__(self) -> None:
        self._printed: dict[str, int] = {}

    def __call__(self, stage: str, now: "PlayingProgress") -> None:
        last = self._printed.get(stage, 0)
        self._printed[stage] = min(last, now.done)  # less than before: the next part of the stage
        if now.done == 0 or now.done < self._printed[stage] + max(1, now.total // 10):
            return
        self._printed[stage] = now.done
        failed = f", {now.failed} failed" if now.failed else ""
        say(
            f"{stage}: {now.done} of {now.total} plays, {now.decoded} decodes, "
            f"{now.saved} saved by the cache{failed}"
        )
