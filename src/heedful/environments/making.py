"""Options of environments, and a registry that makes them by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from heedful.errors import UsageError
from heedful.plugins import Factories
from heedful.ports import Environment

T = TypeVar("T")
OptionValue = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentOptions:
    """The options of every kind of environment; each kind uses those that apply to it."""

    data: Path | None = None
    """The folder of the benchmark data."""
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    """Options that only this kind defines."""

    def read(self, kind: type[T], name: str) -> T:
        """The options as the settings of an environment; an unknown option is refused."""
        try:
            return msgspec.convert(dict(self.options), kind)
        except msgspec.ValidationError as error:
            raise UsageError(f"the options of the environment {name} are wrong: {error}") from error


ENVIRONMENTS: Factories[EnvironmentOptions, Environment] = Factories(
    "heedful.environments",
    {
        "webshop": "heedful.environments.webshop.shop:make_webshop",
        "scienceworld": "heedful.environments.scienceworld:make_scienceworld",
        "textworld_express": "heedful.environments.textworld_express:make_textworld_express",
    },
)
"""Kinds of environments by name."""


def make_environment(name: str, options: EnvironmentOptions) -> Environment:
    """The environment with this name, ours or a plug-in's."""
    if name not in ENVIRONMENTS:
        raise UsageError(f"unknown environment {name!r}; choose one of {', '.join(ENVIRONMENTS)}")
    return ENVIRONMENTS.make(name, options, Environment)
