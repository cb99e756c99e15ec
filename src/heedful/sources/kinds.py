"""Source options of a study file, and a registry that creates sources by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from heedful.plugins import Factories
from heedful.ports import Bank, Source
from heedful.sources.memory import MemorySource
from heedful.sources.reflect import ReflectSource
from heedful.sources.retry import RetrySource
from heedful.sources.verify import VerifySource
from heedful.sources.vote import VoteSource
from heedful.stages.compose import HEADING
from heedful.types import Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of every kind of source; each kind uses those that apply to it."""

    bank: Bank | None = None
    placement: Placement = "auto"
    limit: int = 3
    heading: str = HEADING
    temperature: float | None = None
    seed: int = 0
    """The study's seed; sampled passes derive their own seeds from it."""
    sample: int = 0
    """Tells sources apart that sample the same prompt."""
    options: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    """Options that only this kind defines."""


def _memory(given: SourceOptions) -> Source:
    assert given.bank is not None, "a memory source has a bank"
    return MemorySource(bank=given.bank, placement=given.placement, limit=given.limit, heading=given.heading)


def _retry(given: SourceOptions) -> Source:
    if not given.temperature:
        return RetrySource()
    return RetrySource(temperature=given.temperature, seed=given.seed * 1000 + 1 + given.sample)


SOURCES: Factories[SourceOptions, Source] = Factories(
    "heedful.sources",
    {
        "memory": _memory,
        "retry": _retry,
        "reflect": lambda given: ReflectSource(),
        "vote": lambda given: VoteSource(temperature=given.temperature or 0.7, seed=given.seed),
        "verify": lambda given: VerifySource(temperature=given.temperature or 0.7, seed=given.seed),
    },
)
"""Kinds of sources by name."""
