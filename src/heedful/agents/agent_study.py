"""The file of an agent study, and what it names: environment, bank, model and episodes."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from heedful.agents.agent_arms import MEMORY
from heedful.agents.hints import ASKED_SIDES, refuse_leaks, scoped
from heedful.agents.play import SourcesOf
from heedful.agents.step_task import ActingSettings
from heedful.environments.making import EnvironmentOptions, OptionValue, make_environment
from heedful.errors import UsageError
from heedful.memory.bank import RECALL_METHODS, MemoryBank
from heedful.memory.formats import read_entries
from heedful.ports import Environment, Source
from heedful.protocol.study import ModelSettings, Positive
from heedful.sources import MemorySource
from heedful.types import Entry, EpisodeSide

Count = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]


class EpisodeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many episodes of each side; the first of the environment's order."""

    fit: Positive = 20
    test: Positive = 100


class RecallSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How entries are recalled for goal and observation."""

    method: str = "dense"
    threshold: float = 0.7
    limit: Positive = 3
    heading: str = "Notes from similar situations:"


class ActSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the agent is asked; see `ActingSettings`."""

    steps: Positive = 20
    history_tokens: Positive = 1000
    observation_length: Positive = 1600
    past_length: Positive = 400
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
    model: ModelSettings = ModelSettings(slots=1, context=4096)
    episodes: EpisodeSettings = EpisodeSettings()
    recall: RecallSettings = RecallSettings()
    act: ActSettings = ActSettings()
    fit: AgentFitSettings = AgentFitSettings()
    seed: Count = 0
    notes: str = ""

    @property
    def acting(self) -> ActingSettings:
        return ActingSettings(**msgspec.structs.asdict(self.act))


def read_agent_study(file: Path) -> AgentStudy:
    """Read an agent study from a TOML file; an error names the wrong key or value."""
    try:
        study = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), AgentStudy)
    except OSError as error:
        raise UsageError(f"the study file {file} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"the study file {file} is not TOML: {error}") from error
    except msgspec.ValidationError as error:
        raise UsageError(f"the study file {file} is wrong: {error}") from error
    if study.recall.method not in RECALL_METHODS:
        known = ", ".join(RECALL_METHODS)
        raise UsageError(f"{file}: [recall] method is {study.recall.method!r}; choose one of {known}")
    if Path(study.bank).name != study.bank:
        raise UsageError(f"{file}: the bank {study.bank!r} is not next to the study file: put it there")
    return study


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSetup:
    """Everything an agent study works with, except the model."""

    study: AgentStudy
    entries: tuple[Entry, ...]
    bank: MemoryBank
    """All entries; an episode recalls those of its type of goal."""
    seeds: Mapping[EpisodeSide, tuple[int, ...]]
    sources: SourcesOf
    make: Callable[[], Environment]
    spec: Mapping[str, object]
    """The settings of the environment."""


def prepare_agents(folder: Path, study: AgentStudy, data: Path | None) -> AgentSetup:
    """Read the bank, draw the episodes, and refuse a bank that was built from them."""
    options = EnvironmentOptions(data=data, options=study.options)
    environment = make_environment(study.environment, options)
    try:
        seeds = {side: _drawn(environment, study, side) for side in ASKED_SIDES}
        entries = read_entries(folder / study.bank)[0]
        refuse_leaks(entries, environment, seeds)
        spec = dict(environment.spec)
    finally:
        environment.close()
    return AgentSetup(
        study=study,
        entries=tuple(entries),
        bank=memory_bank(entries, study.recall),
        seeds=seeds,
        sources=memory_sources(entries, study.recall),
        make=lambda: make_environment(study.environment, options),
        spec=spec,
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
        source = MemorySource(bank=bank, placement="after", limit=recall.limit, heading=recall.heading)
        return {MEMORY: source}

    return sources
