"""Registries of named parts: heedful's own, and those that other packages add through entry points.

    [project.entry-points."heedful.guards"]
    polite = "my_package:PoliteGuard"

A part is given as `module:object` and imported at first use. A plug-in that does not load, or has the wrong
type for its group, is skipped with a warning that names it.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar, cast

from heedful.errors import HeedfulError, UsageError

T = TypeVar("T")
A = TypeVar("A")
R = TypeVar("R")
LOG = logging.getLogger("heedful")


class Registry(Mapping[str, T], Generic[T]):
    """The parts of one group by name; a plug-in that is a class is instantiated."""

    def __init__(
        self, group: str, own: Mapping[str, T | str], *, fits: Callable[[object], bool] = callable
    ) -> None:
        """`own` holds heedful's parts or their locations; `fits` checks whether a part suits this group."""
        self.group = group
        self._own = own
        self._fits = fits
        self._loaded: dict[str, T] = {}
        self._added: dict[str, T] | None = None
        self._broken: list[str] = []

    def __getitem__(self, name: str) -> T:
        if name not in self._own:
            return self.added()[name]
        if name not in self._loaded:
            part = self._own[name]
            self._loaded[name] = cast(T, _located(part)) if isinstance(part, str) else part
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from self.added()

    def __len__(self) -> int:
        return len(self._own) + len(self.added())

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self.added()

    def added(self) -> Mapping[str, T]:
        """The usable parts of other packages; they are looked up once."""
        if self._added is None:
            self._added = {}
            for point in entry_points(group=self.group):
                if (problem := self._add(point)) is not None:
                    self._broken.append(f"{_named(point)}: {problem}")
                    LOG.warning("heedful: skipping the plug-in %s", self._broken[-1])
        return self._added

    def broken(self) -> Sequence[str]:
        """The parts of other packages that cannot be used, each with the reason."""
        self.added()
        return self._broken

    def _add(self, point: EntryPoint) -> str | None:
        """Add a part of another package, or return why it cannot be added."""
        assert self._added is not None
        if point.name in self._own or point.name in self._added:
            return f"{self.group} already has a part named {point.name!r}"
        try:
            part = point.load()
            value = part() if isinstance(part, type) and not self._fits(part) else part
        except Exception as error:  # third-party code may raise anything; heedful continues without it
            return f"{type(error).__name__}: {error}"
        if not self._fits(value):
            return f"{type(value).__name__} has the wrong type for {self.group}"
        self._added[point.name] = cast(T, value)
        return None


def _located(place: str) -> object:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _named(point: EntryPoint) -> str:
    package = point.dist.name if point.dist is not None else point.value
    return f"{point.name} of {package} ({point.group})"


class Factories(Registry[Callable[[A], R]], Generic[A, R]):
    """Parts that are made from options when they are needed."""

    def make(self, name: str, options: A, port: type) -> R:
        """Make a part; a plug-in that fails, or makes something else, is named."""
        if name in self._own:
            return self[name](options)
        try:
            part = self[name](options)
        except HeedfulError:
            raise
        except Exception as error:  # third-party code may raise anything
            problem = f"{type(error).__name__}: {error}"
        else:
            if isinstance(part, port):
                return part
            problem = f"it made a {type(part).__name__}, which is not a {port.__name__}"
        raise UsageError(f"the plug-in {name!r} of {self.group} failed: {problem}")
