"""Many workers as one model: who gets a prompt, and what happens when a worker fails or is slow."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from heedful import ModelError, RequestError, ScriptedModel, UsageError
from heedful.errors import MissingError, WorkersError
from heedful.models.crew import CHECKS, FIRST_PATIENCE, FIRST_WAIT, LEAST_PATIENCE
from heedful.models.fleet import TRIES, Fleet, Worker, slots_of
from heedful.models.scripted import SCRIPTED
from heedful.testing import check_model
from heedful.types import Decode, Message, Prompt, Traits


def asks(text: str) -> Prompt:
    return Prompt(messages=(Message(role="user", content=text),))


@dataclass
class Desk:
    """A model that answers with its name, and fails or waits as its script says."""

    name: str
    script: Callable[[int], Exception | None] = lambda number: None
    waits: asyncio.Event | None = None
    seen: list[str] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    traits: Traits = SCRIPTED

    async def decode(self, prompt: Prompt) -> Decode:
        self.seen.append(prompt.messages[-1].content)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            error = self.script(len(self.seen))
            await asyncio.sleep(0)
            if error is not None:
                raise error
            if self.waits is not None:
                await self.waits.wait()
            return Decode(text=self.name)
        finally:
            self.at_once -= 1

    async def aclose(self) -> None:
        self.seen.append("closed")


@dataclass
class Naps:
    """Sleeps that end at once, or, if they are long, only when the test says so."""

    taken: list[float] = field(default_factory=list)
    patience: asyncio.Event = field(default_factory=asyncio.Event)
    twice: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
        if len(self.taken) == 2:
            self.twice.set()
        await (self.patience.wait() if seconds in (LEAST_PATIENCE, FIRST_PATIENCE) else asyncio.sleep(0))


async def nothing(worker: Worker) -> None:
    await asyncio.sleep(0)


def fleet(*desks: Desk, capacity: int = 2, check: Callable[..., object] = nothing, naps: Naps) -> Fleet:
    workers = [Worker(name=desk.name, model=desk, capacity=capacity) for desk in desks]
    return Fleet(workers=workers, identity=SCRIPTED, check=check, sleep=naps)  # type: ignore[arg-type]


async def answers(model: Fleet, number: int) -> Counter[str]:
    decodes = await asyncio.gather(*(model.decode(asks(f"q{n}")) for n in range(number)))
    return Counter(decode.text for decode in decodes)


def test_a_fleet_is_a_model_by_the_conformance_suite() -> None:
    worker = Worker(name="a", model=ScriptedModel(script=lambda prompt: "yes"), capacity=2)
    asyncio.run(check_model(Fleet(workers=[worker], identity=SCRIPTED, check=nothing)))


def test_prompts_go_to_all_workers_and_to_none_more_than_it_takes_at_once() -> None:
    desks = [Desk("a"), Desk("b"), Desk("c")]
    found = asyncio.run(answers(fleet(*desks, naps=Naps()), 30))
    assert found == {"a": 10, "b": 10, "c": 10}
    assert [desk.most_at_once for desk in desks] == [2, 2, 2]


def test_a_failed_worker_gives_its_prompts_to_others_and_is_used_again_after_a_check() -> None:
    desks = [Desk("a", lambda number: ModelError("down") if number == 1 else None), Desk("b")]
    found = asyncio.run(answers(fleet(*desks, naps=Naps()), 20))
    assert sum(found.values()) == 20
    assert len(desks[0].seen) > 1
    assert found["a"] > 0


def test_a_worker_that_asks_for_rest_gets_as_much_and_half_the_prompts_at_once() -> None:
    first = [ModelError("429", 7.0)]
    desks = [Desk("a", lambda number: first.pop() if number == 1 else None), Desk("b")]
    naps = Naps()

    async def go() -> None:
        model = fleet(*desks, capacity=4, naps=naps)
        await model.decode(asks("first"))
        desks[0].most_at_once = 0
        await answers(model, 6)

    asyncio.run(go())
    assert 7.0 in naps.taken
    assert desks[0].most_at_once == 2


def test_a_slow_worker_is_overtaken_and_its_prompt_is_answered_once() -> None:
    async def go() -> Counter[str]:
        naps, stuck = Naps(), asyncio.Event()
        model = fleet(Desk("slow", waits=stuck), Desk("quick"), capacity=1, naps=naps)
        asked = asyncio.create_task(answers(model, 2))
        await naps.twice.wait()  # both prompts are under way
        naps.patience.set()
        return await asked

    assert asyncio.run(go()) == {"quick": 2}


def test_if_every_worker_stays_down_one_error_names_them_all_and_the_next_step() -> None:
    checks = Counter[str]()

    async def check(worker: Worker) -> None:
        checks[worker.name] += 1
        raise ModelError(f"no connection to {worker.name}")

    naps = Naps()
    with pytest.raises(WorkersError) as refused:
        asyncio.run(answers(fleet(Desk("a"), Desk("b"), check=check, naps=naps), 3))
    assert str(refused.value) == (
        "no worker answers (a: no connection to a; b: no connection to b); recorded passes are kept, start "
        "the workers and run the same command again"
    )
    assert min(checks.values()) >= CHECKS
    assert sorted(naps.taken)[:4] == [FIRST_WAIT, FIRST_WAIT, 2 * FIRST_WAIT, 2 * FIRST_WAIT]


def test_a_worker_that_does_not_answer_is_named_once_and_again_when_it_does(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failures = [ModelError("refused"), ModelError("refused")]

    async def check(worker: Worker) -> None:
        await asyncio.sleep(0)
        if worker.name == "b" and failures:
            raise failures.pop()

    found = asyncio.run(answers(fleet(Desk("a"), Desk("b"), check=check, naps=Naps()), 40))
    assert found["b"] > 0
    assert caplog.messages == [
        "b does not answer, the other workers do its part: refused",
        "b answers again",
    ]


def test_a_worker_that_must_not_be_used_ends_the_work() -> None:
    async def check(worker: Worker) -> None:
        if worker.name == "b":
            raise MissingError("no key")
        await asyncio.sleep(0)
        raise ModelError("busy")

    with pytest.raises(MissingError, match="no key"):
        asyncio.run(answers(fleet(Desk("a"), Desk("b"), check=check, naps=Naps()), 3))


def test_a_prompt_that_every_worker_fails_on_fails_alone() -> None:
    async def go() -> tuple[str, str]:
        bad = Desk("a", lambda number: ModelError("crashed") if bad.seen[-1] == "bad" else None)
        model = fleet(bad, capacity=2, naps=Naps())
        with pytest.raises(ModelError) as refused:
            await model.decode(asks("bad"))
        assert bad.seen.count("bad") == TRIES
        return str(refused.value), (await model.decode(asks("good"))).text

    assert asyncio.run(go()) == (f"{TRIES} workers failed, the last one with: crashed", "a")


def test_a_rejected_prompt_is_not_tried_elsewhere() -> None:
    desks = [Desk(name, lambda number: RequestError("too long")) for name in ("a", "b")]
    with pytest.raises(RequestError, match="too long"):
        asyncio.run(fleet(*desks, naps=Naps()).decode(asks("long")))
    assert sum(len(desk.seen) for desk in desks) == 1


def test_a_fleet_works_in_one_event_loop_after_another_and_closes_its_workers() -> None:
    desk = Desk("a")
    model = fleet(desk, naps=Naps())

    async def go() -> int:
        await model.decode(asks("one"))
        return model.up

    assert [asyncio.run(go()), asyncio.run(go())] == [1, 1]
    asyncio.run(model.aclose())
    assert desk.seen == ["one", "one", "closed"]


def test_a_recording_uses_the_capacity_of_a_fleet_and_the_slots_of_another_model() -> None:
    assert slots_of(fleet(Desk("a"), Desk("b"), capacity=3, naps=Naps()), 4) == 6
    assert slots_of(Desk("a"), 4) == 4


def test_a_fleet_without_workers_is_refused() -> None:
    with pytest.raises(UsageError, match="no workers"):
        Fleet(workers=[], identity=SCRIPTED, check=nothing)
