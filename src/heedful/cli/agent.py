"""`heedful agent`: episodes in an environment, and studies of them."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import BankName, Json, ModelName, Store, Threads, Url, Weights
from heedful.cli.output import counted, print_json, result, say
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.agents.agent_study import AgentSetup, RecallSettings
    from heedful.agents.play import StepView
    from heedful.agents.playing import PlayingProgress
    from heedful.environments.making import EnvironmentOptions, OptionValue
    from heedful.models.schemes import ModelOptions
    from heedful.ports import Model
    from heedful.types import Entry, Policy

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
ARMS = ("never", "retry", "always", "fixed-budget", "threshold")
CONTEXT = 4096


@app.command()
def run(
    environment: World,
    goal: Annotated[int, typer.Option(help="Number of the episode.")] = 0,
    bank: BankName = "default",
    arm: Annotated[str, typer.Option(help=f"How memory is used: {', '.join(ARMS)}.")] = "threshold",
    threshold: Annotated[float, typer.Option(help="Consult memory below this confidence.")] = -0.1,
    margin: Annotated[float, typer.Option(help="Accept an action that is surer by this much.")] = 0.0,
    budget: Annotated[int, typer.Option(min=0, help="Maximum number of consultations.")] = 4,
    cooldown: Annotated[int, typer.Option(min=0, help="Steps to wait after a consultation.")] = 0,
    recall: Annotated[str, typer.Option(help="Recall method: dense, bm25, bm25_rerank.")] = "dense",
    similarity: Annotated[float, typer.Option(help="Minimum cosine similarity of dense recall.")] = 0.6,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of entries in a prompt.")] = 3,
    steps: Annotated[int, typer.Option(min=1, help="Maximum number of steps.")] = 20,
    branch: Annotated[
        bool, typer.Option("--branch", help="Finish the episode both ways where memory proposes a change.")
    ] = False,
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
    from heedful.environments.making import make_environment
    from heedful.models.schemes import ModelOptions

    policy = _policy(arm, threshold, margin, budget, cooldown)
    settings = RecallSettings(method=recall, threshold=similarity, limit=limit)
    world = make_environment(environment, _options(data, option))
    try:
        entries = _entries(bank, store) if arm not in ("never", "retry") else []
        opened = _open_model(
            ModelOptions(
                url=url or "", model=model or "", weights=weights, threads=threads, slots=1, context=CONTEXT
            ),
            settings if entries else None,
        )
        play = EpisodeRun(
            world=world,
            model=opened,
            arm=arm,
            policy=policy,
            sources=memory_sources(entries, settings),
            settings=ActingSettings(steps=steps),
            branch=branch,
        )
        played = asyncio.run(play_once(play, goal, (lambda step: None) if json else _print_step))
    finally:
        world.close()
    if json:
        print_json(played.fields)
        return
    for line in played.lines:
        result().print(line, markup=False, soft_wrap=True)


@app.command()
def hints(
    environment: World,
    out: Annotated[Path, typer.Option(help="File to write the entries to.")] = Path("hints.jsonl"),
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of entries.")] = 200,
    failures: Annotated[
        int, typer.Option(min=0, help="Pool episodes to play; each failure becomes an entry.")
    ] = 0,
    steps: Annotated[int, typer.Option(min=1, help="Maximum number of steps of a played episode.")] = 20,
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
    from heedful.agents.step_task import ActingSettings
    from heedful.environments.making import make_environment
    from heedful.models.schemes import ModelOptions

    world = make_environment(environment, _options(data, option))
    settings = ModelOptions(
        url=url or "", model=model or "", weights=weights, threads=threads, slots=1, context=CONTEXT
    )
    opened = _open_model(settings, None) if failures else None
    try:
        counts = asyncio.run(write_hints(world, out, limit, failures, opened, ActingSettings(steps=steps)))
    finally:
        world.close()
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
    opened = _study_model(setup)
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
    from heedful.agents.agent_workspace import open_agent_folder
    from heedful.memory.formats import read_entries

    folder, read = open_agent_folder(place, None)
    bank = folder.folder / read.bank
    entries = read_entries(bank)[0] if bank.exists() else ()
    texts = {entry.id: f"{entry.text} {entry.response}".strip() for entry in entries}
    written = write_agent_report(folder, texts)
    if json:
        print_json(written.summary)
        return
    result().print(written.text, markup=False, soft_wrap=True)
    say(f"full report: {folder.folder / 'report.html'}; traces: {folder.folder / 'traces.html'}")


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


def _entries(bank: str, store: Path | None) -> "list[Entry]":
    """The entries of a file, or of a bank in the store; the bank `default` may be missing."""
    from heedful.cli.resources import open_store, require_bank
    from heedful.memory.formats import read_entries

    if Path(bank).is_file():
        return list(read_entries(Path(bank))[0])
    opened = open_store(store)
    if bank != "default":
        require_bank(opened, bank)
    return list(asyncio.run(opened.entries(bank)))


def _open_model(options: "ModelOptions", recall: "RecallSettings | None") -> "Model":
    from heedful.cli.resources import open_model, pull_weights

    if recall is not None and recall.method != "bm25":
        pull_weights("all-minilm-l6-v2")
    return open_model(options)


def _study_model(setup: "AgentSetup") -> "Model":
    from heedful.cli.resources import pull_weights
    from heedful.models.catalogue import CATALOGUE
    from heedful.protocol.study_model import study_model

    if setup.study.recall.method != "bm25":
        pull_weights("all-minilm-l6-v2")
    settings = setup.study.model
    if not settings.url and settings.weights in CATALOGUE:
        pull_weights(settings.weights)
    return study_model(settings)


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
            f"{stage}: {now.done} of {now.total} episodes, {now.decoded} decodes, "
            f"{now.saved} saved by the cache{failed}"
        )
