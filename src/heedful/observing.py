"""Run a block under an observer whose failures never reach the block."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar

from heedful.ports import Observer

T = TypeVar("T")
Tell = Callable[[T], None]
Surviving = Callable[[], AbstractContextManager[object]]
"""Makes a block whose exceptions are recorded and do not leave it."""


def watched(
    observer: Observer | None,
    open: Callable[[Observer], AbstractContextManager[Tell[T]]],
    surviving: Surviving,
) -> AbstractContextManager[Tell[T]]:
    """Give a function that tells the observer the result; without an observer it does nothing."""
    return UNWATCHED if observer is None else _watched(observer, open, surviving)


@contextmanager
def _watched(
    observer: Observer,
    open: Callable[[Observer], AbstractContextManager[Tell[T]]],
    surviving: Surviving,
) -> Iterator[Tell[T]]:
    manager: AbstractContextManager[Tell[T]] | None = None
    tell: Tell[T] = _ignore
    with surviving():
        opened = open(observer)
        tell, manager = opened.__enter__(), opened

    def told(result: T) -> None:
        with surviving():
            tell(result)

    error: BaseException | None = None
    try:
        yield told
    except BaseException as raised:
        error = raised
        raise
    finally:
        if manager is not None:
            with surviving():
                manager.__exit__(
                    type(error) if error else None, error, error.__traceback__ if error else None
                )


def _ignore(result: object) -> None:
    """Nobody watches."""


UNWATCHED: AbstractContextManager[Tell[object]] = nullcontext(_ignore)
"""One for all blocks: every answer enters several."""
