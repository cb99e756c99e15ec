"""The file of an agent study, and what it names: environment, bank, model and episodes."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import getsourcefile
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from heedful.agents.agent_arms import MEMORY
from heedful.agents.example import EXAMPLE_STEPS, solved_example
from heedful.agents.hints import ASKED_SIDES, refuse_leaks, scoped
from heedful.agents.play import SourcesOf
from heedful.agents.step_task import ActingSettings
from heedful.agents.world_worker import close_world, watched
from heedful.control import run_sync
from heedful.environments.making import EnvironmentOptions, OptionValue, make_environment
from heedful.errors import LeakError, UsageError
from heedful.memory.bank import RECALL_METHODS, WITHOUT_THRESHOLD, MemoryBank
from heedful.memory.formats import read_entries
from heedful.ports import Environment, Source
from heedful.protocol.deciding_code import PACKAGE
from heedful.protocol.idle_settings import idle_model_settings, refuse_idle_keys
from heedful.protocol.study import FOLDER_NAME, ModelSettings, Positive, is_folder_name, refuse_infinite
from heedful.protocol.workspace import read_json, write_json
from heedful.sources import MemorySource
from heedful.types import Entry, EpisodeSide, HintPlacement, Message

Count = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Cosine = Annotated[float, Meta(ge=-1, le=1)]
EXAMPLE_FILE = "example.json"
SLOTS, CONTEXT = 1, 4096
EXAMPLE_PATIENCE = 10
"""The search for an example may take this many times as long as a step."""


class EpisodeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many episodes of each side; the first of the environment's order."""

    fit: Positive = 20
    test: Positive = 100


class RecallSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How entries are recalled for goal and observation."""

    method: str = "dense"
    threshold: Cosine = 0.6
    limit: Positive = 3
    placement: HintPlacement = "after"
    """`advice`: hints are shown without the situations that they are recalled by."""
    heading: str = "Notes from similar situations:"


class ActSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the agent is asked; see `ActingSettings`."""

    example: Count = EXAMPLE_STEPS
    """Begin every prompt with a solved pool episode of at most this many steps; 0: without one."""
    steps: Positive = 20
    history_tokens: Positive = 400
    observation_length: Positive = 1600
    past_length: Positive = 80
    shown_actions: Positive = 30
    max_tokens: Positive = 64
    world_patience: Annotated[float, Meta(gt=0)] = 60.0


class AgentFitSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The grid of threshold policies, and the branches from which a value policy is fitted."""

    quantiles: Annotated[tuple[Share, ...], Meta(min_length=1)] = (0.35, 0.7)
    """Consult below these quantiles of the fit side's confidences."""
    margins: Annotated[tuple[float, ...], Meta(min_length=1)] = (-0.1, 0.0)
    budgets: Annotated[tuple[Positive, ...], Meta(min_length=1)] = (2, 4)
    """B: consultations per episode."""
    cooldowns: Annotated[tuple[Count, ...], Meta(min_length=1)] = (0, 2)
    """K: steps to wait after a consultation."""
    cost: Annotated[float, Meta(ge=0)] = 0.01
    """λ of the objective score − λ·calls per step."""
    branches: Count = 4
    """Per fit episode: steps at which memory proposes another action and the episode is finished with it."""


class AgentStudy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent study file."""

    name: str
    environment: str
    options: Mapping[str, OptionValue] = {}
    bank: str
    """A file of entries, next to the study file."""
    model: ModelSettings = ModelSettings(slots=SLOTS, context=CONTEXT)
    """A study file that leaves out slots or context gets these too."""
    episodes: EpisodeSettings = EpisodeSettings()
    recall: RecallSettings = RecallSettings()
    act: ActSettings = ActSettings()
    fit: AgentFitSettings = AgentFitSettings()
    seed: Count = 0
    notes: str = ""

    @property
    def acting(self) -> ActingSettings:
        settings = msgspec.structs.asdict(self.act)
        del settings["example"]
        return ActingSettings(**settings)


def read_agent_study(file: Path) -> AgentStudy:
    """Read an agent study from a TOML file; an error names the wrong key or value."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
        given = dict(tables)
        if isinstance(model := tables.get("model", {}), dict):
            tables["model"] = {"slots": SLOTS, "context": CONTEXT, **model}
        refuse_infinite(tables, file)
        study = msgspec.convert(tables, AgentStudy)
    except OSError as error:
        raise UsageError(f"the study file {file} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"the study file {file} is not TOML: {error}") from error
    except msgspec.ValidationError as error:
        raise UsageError(f"the study file {file} is wrong: {error}") from error
    if not is_folder_name(study.name):
        raise UsageError(f"{file}: a study cannot be named {study.name!r}; {FOLDER_NAME}")
    if study.recall.method not in RECALL_METHODS:
        known = ", ".join(RECALL_METHODS)
        raise UsageError(f"{file}: [recall] method is {study.recall.method!r}; choose one of {known}")
    refuse_idle_keys(_idle(study, given), file)
    if Path(study.bank).name != study.bank:
        raise UsageError(f"{file}: the bank {study.bank!r} is not next to the study file: put it there")
    return study


def _idle(study: AgentStudy, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The keys of a study file without effect, each with the reason."""
    yield from idle_model_settings(given.get("model", {}), study.model.url)
    if "threshold" in given.get("recall", {}) and study.recall.method in WITHOUT_THRESHOLD:
        yield "[recall] threshold", f"on recall by {study.recall.method}, which uses no similarity"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSetup:
    """Everything an agent study works with, except the model."""

    study: AgentStudy
    entries: tuple[Entry, ...]
    bank: MemoryBank
    """All entries; an episode recalls those of its type of goal."""
    seeds: Mapping[EpisodeSide, tuple[int, ...]]
    sources: SourcesOf
    example: tuple[Message, ...] = ()
    """Turns of a solved episode, at the beginning of every prompt."""
    make: Callable[[], Environment]
    spec: Mapping[str, object]
    """The settings of the environment."""
    plugin: Path | None = None
    """The module of an environment that is not heedful's own."""


def prepare_agents(folder: Path, study: AgentStudy, data: Path | None) -> AgentSetup:
    """Read the bank, draw the episodes, and refuse a bank that was built from them."""
    options = EnvironmentOptions(data=data, options=study.options)
    environment = make_environment(study.environment, options)
    try:
        seeds = {side: _drawn(environment, study, side) for side in ASKED_SIDES}
        refuse_shared_episodes(environment, seeds)
        entries = read_entries(folder / study.bank)[0]
        if not entries:
            raise UsageError(f"the bank {study.bank} is empty: build one with heedful agent hints")
        refuse_leaks(entries, environment, seeds)
        example = study_example(folder / EXAMPLE_FILE, environment, study) if study.act.example else ()
        spec = dict(environment.spec)
        module = getsourcefile(type(environment))
    finally:
        close_world(environment)
    return AgentSetup(
        study=study,
        entries=tuple(entries),
        bank=memory_bank(entries, study.recall),
        seeds=seeds,
        sources=memory_sources(entries, study.recall),
        example=example,
        make=lambda: make_environment(study.environment, options),
        spec=spec,
        plugin=Path(module) if module and not Path(module).is_relative_to(PACKAGE) else None,
    )


def study_example(file: Path, environment: Environment, study: AgentStudy) -> tuple[Message, ...]:
    """The example of a study, made once: some environments find another solution at each call."""
    if not file.exists():
        turns = run_sync(
            watched(
                lambda: solved_example(environment, study.acting, study.act.example),
                "the search for an example",
                EXAMPLE_PATIENCE * study.act.world_patience,
            )
        )
        write_json(file, {"turns": msgspec.to_builtins(turns)})
    stored = read_json(file, "run heedful agent study again")
    try:
        return msgspec.convert(stored.get("turns"), tuple[Message, ...])
    except msgspec.ValidationError as error:
        raise UsageError(f"{file} is not the example of a study: {error}; restore the file") from error


def refuse_shared_episodes(environment: Environment, asked: Mapping[EpisodeSide, Sequence[int]]) -> None:
    """Raise `LeakError` if an episode is on two sides: a policy would be tested on what it was chosen on."""
    pool = set(environment.seeds("pool"))
    shared = sorted(
        set(asked["fit"]) & set(asked["test"]) | pool & {seed for seeds in asked.values() for seed in seeds}
    )
    if shared:
        listed = ", ".join(map(str, shared[:5]))
        raise LeakError(
            f"{len(shared)} of the episodes are on two sides ({listed}): each side of seeds() "
            "needs its own, which check_environment tests"
        )


def _drawn(environment: Environment, study: AgentStudy, side: EpisodeSide) -> tuple[int, ...]:
    wanted = {"fit": study.episodes.fit, "test": study.episodes.test}[side]
    seeds = environment.seeds(side)
    if len(seeds) < wanted:
        raise UsageError(
            f"the study wants {wanted} {side} episodes, but there are {len(seeds)}: lower [episodes]"
        )
    return tuple(seeds[:wanted])


def memory_bank(entries: Sequence[Entry], recall: RecallSettings) -> MemoryBank:
    return MemoryBank(MEMORY, entries, method=recall.method, threshold=recall.threshold)


def memory_sources(entries: Sequence[Entry], recall: RecallSettings) -> SourcesOf:
    """The memory source for each type of goal; its index is built once."""
    of_kind = scoped(entries)

    @cache
    def sources(kind: str) -> dict[str, Source]:
        bank = memory_bank(of_kind(kind), recall)
        source = MemorySource(
            bank=bank, placement=recall.placement, limit=recall.limit, heading=recall.heading
        )
        return {MEMORY: source}

    return sources
