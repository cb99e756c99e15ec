"""What an environment may return, and what becomes of one that returns something else."""

import asyncio
import sys
import threading
from dataclasses import replace
from typing import Any

import pytest

from heedful.agents.world_worker import close_world, usable, watched
from heedful.errors import WorldError
from heedful.types import Observation

SEEN = Observation(text="A room.", actions=("go",))


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (None, "returned a NoneType, not an Observation"),
        ({"text": "A room."}, "returned a dict, not an Observation"),
        (replace(SEEN, score=float("nan")), "the score nan"),
        (replace(SEEN, score=5.0), "the score 5.0"),
        (Observation(text=None, actions=("go",)), "without a text or actions"),  # type: ignore[arg-type]
        (replace(SEEN, actions=()), "offers no action"),
        (Observation(text="A room.", actions="go"), "without a text or actions"),  # type: ignore[arg-type]
    ],
)
def test_an_observation_that_cannot_be_used_is_a_fault_of_the_environment(seen: Any, said: str) -> None:
    with pytest.raises(WorldError, match=said):
        usable(seen, "step('go')")


def test_an_environment_that_cannot_be_closed_is_closed_all_the_same() -> None:
    tried: list[str] = []

    class Stuck:
        def close(self) -> None:
            tried.append("close")
            raise OSError("still busy")

    close_world(Stuck())  # type: ignore[arg-type]
    assert tried == ["close"]


def test_a_usable_observation_comes_back_as_it_was() -> None:
    assert usable(SEEN, "reset(0)") is SEEN
    assert usable(replace(SEEN, actions=(), done=True), "step('go')").done


def test_a_call_that_raises_or_hangs_is_a_fault_of_the_environment() -> None:
    release = threading.Event()

    def raises() -> int:
        raise ZeroDivisionError("no rooms")

    with pytest.raises(WorldError, match="failed at seeds: ZeroDivisionError: no rooms"):
        asyncio.run(watched(raises, "seeds", 10))
    with pytest.raises(WorldError, match=r"failed at seeds: RuntimeError: SystemExit\(9\)"):
        asyncio.run(watched(lambda: sys.exit(9), "seeds", 10))
    with pytest.raises(WorldError, match=r"did not answer gold within 0\.01 s"):
        asyncio.run(watched(release.wait, "gold", 0.01))
    release.set()
    assert asyncio.run(watched(lambda: 7, "seeds", 10)) == 7
