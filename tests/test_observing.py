"""An observer sees decisions and passes, and cannot break them."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from heedful import Controller, ModelError, ScriptedModel, Task, arms
from heedful.ports import Observer
from heedful.types import Attempt, Outcome, Traits


class Listener:
    """Notes what it is told, and raises where it is told to."""

    def __init__(self, fails_at: str = "") -> None:
        self.fails_at = fails_at
        self.heard: list[str] = []

    def note(self, moment: str) -> None:
        self.heard.append(moment)
        if moment == self.fails_at:
            raise RuntimeError(f"I fail at {moment}")

    @contextmanager
    def watching(self, what: str) -> Iterator[Callable[[Any], None]]:
        self.note(f"{what} begins")
        yield lambda result: self.note(f"{what} tells")
        self.note(f"{what} ends")

    def deciding(
        self, decision: str, task: Task, model: Traits
    ) -> AbstractContextManager[Callable[[Outcome], None]]:
        return self.watching("decision")

    def passing(
        self, decision: str, source: str, model: Traits
    ) -> AbstractContextManager[Callable[[Attempt], None]]:
        return self.watching(source)


def answer(observer: Observer, reply: Any = ("red", -0.9)) -> Outcome:
    policy = arms.retry(threshold=-0.5)
    model = ScriptedModel(script=lambda prompt: reply)
    return Controller(model=model, policy=policy, observer=observer).answer_sync(Task(question="What?"))


ORDER = [
    "decision begins",
    *("none begins", "none tells", "none ends"),
    *("retry begins", "retry tells", "retry ends"),
    *("decision tells", "decision ends"),
]


def test_the_first_pass_is_told_before_the_second_begins() -> None:
    listener = Listener()
    assert isinstance(listener, Observer)
    answer(listener)
    assert listener.heard == ORDER


@pytest.mark.parametrize("moment", ORDER)
def test_an_observer_that_fails_costs_no_answer(moment: str) -> None:
    outcome = answer(Listener(fails_at=moment))
    assert outcome.answer == "red"
    told = {fault.stage for fault in outcome.faults}
    assert told <= {"observer"}
    if not moment.startswith("decision") or moment == "decision begins":
        assert told == {"observer"}


def test_a_failure_of_the_model_is_not_swallowed() -> None:
    listener = Listener()
    with pytest.raises(ModelError, match="down"):
        answer(listener, ModelError("down"))
    assert listener.heard == ["decision begins", "none begins"]
