"""What can be named: heedful's own parts and those that other packages add by entry points.

    [project.entry-points."heedful.guards"]
    polite = "my_package:PoliteGuard"

A part is written `module:object` and imported when it is first used, ours as well as theirs. One that
does not load, or is not what its group holds, is named in a warning and left out.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar, cast

T = TypeVar("T")
LOG = logging.getLogger("heedful")


class Registry(Mapping[str, T], Generic[T]):
    """The parts of one group by name; a class among them is made into a value."""

    def __init__(
        self, group: str, own: Mapping[str, T | str], *, fits: Callable[[object], bool] = callable
    ) -> None:
        """`own` are heedful's parts, or where they are; `fits` tells whether something is of this group."""
        self.group = group
        self._own = own
        self._fits = fits
        self._loaded: dict[str, T] = {}
        self._added: dict[str, T] | None = None

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
        """The parts of other packages that load and fit; looked for once."""
        if self._added is None:
            self._added = {}
            for point in entry_points(group=self.group):
                if (problem := self._add(point)) is not None:
                    LOG.warning("heedful: the plug-in %s is left out: %s", _named(point), problem)
        return self._added

    def _add(self, point: EntryPoint) -> str | None:
        """Take a part of another package, or say why not."""
        assert self._added is not None
        if point.name in self._own or point.name in self._added:
            return f"there is a {point.name!r} in {self.group} already"
        try:
            part = point.load()
            made = part() if isinstance(part, type) and not self._fits(part) else part
        except Exception as error:  # other people's code: whatever it raises, heedful goes on without it
            return f"{type(error).__name__}: {error}"
        if not self._fits(made):
            return f"{type(made).__name__} is not what {self.group} holds"
        self._added[point.name] = cast(T, made)
        return None


def _located(place: str) -> object:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _named(point: EntryPoint) -> str:
    package = point.dist.name if point.dist is not None else point.value
    return f"{point.name} of {package} ({point.group})"
