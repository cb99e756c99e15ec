"""Recording with many workers gives the ledger of a recording with one."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from heedful import HeedfulError, UsageError
from heedful.errors import MissingError, WorkersError
from heedful.models.fleet import Fleet, Worker
from heedful.models.process import ProcessModel
from heedful.models.scripted import SCRIPTED, ScriptedModel
from heedful.protocol.ledger import Ledger
from heedful.protocol.setup import prepare
from heedful.protocol.study import ModelSettings, read_study
from heedful.protocol.workers import recording_model
from heedful.protocol.workflow import record
from heedful.protocol.workspace import open_workspace
from heedful.types import Decode, Message, Prompt
from tests.faulty import FaultyServer, Play, Request, Script, answers, fails, in_turn
from tests.protocol.shelves import QUICK, nobody, shelf_model, written
from tests.test_extras import without

FEW = QUICK.replace("[sources.notes]", "[split]\nfit = 12\n[sources.notes]")
Sleep = Callable[[float], Awaitable[None]]
URL = '[model]\nurl = "{url}"\nmodel = "m"\n'


def shelves(request: Request) -> Play:
    """What the scripted model says, from an endpoint."""
    messages = tuple(Message(role=m["role"], content=m["content"]) for m in request.body["messages"])
    if "sea" in messages[-1].content:
        return answers("It is salty.")
    prompt = Prompt(messages=messages, temperature=request.body.get("temperature", 0.0))
    decode = asyncio.run(shelf_model().decode(prompt))
    return answers(decode.text, decode.tokens[0].logprob)


async def hurry(seconds: float) -> None:
    """A wait that is a hundredth as long."""
    await asyncio.sleep(seconds / 100)


def recorded(file: Path, out: Path, workers: str | None, sleep: Sleep | None = None) -> list[tuple[Any, ...]]:
    """The rows of a recording, without times and without the model's address."""
    space = open_workspace(file, out)
    setup = prepare(space.study, None)
    model = recording_model(setup.study.model, workers)
    if sleep is not None and isinstance(model, Fleet):
        model = replace(model, sleep=sleep)
    asyncio.run(record(space, setup, model, "fit", nobody))
    return rows(space.ledger)


def rows(file: Path) -> list[tuple[Any, ...]]:
    kept = [(row.key, replace(row.record, seconds=0.0), row.right) for row in Ledger(file).passes.values()]
    return sorted(kept, key=lambda row: row[0])


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer(shelves) as running:
        yield running


def study(folder: Path, url: str) -> Path:
    return written(folder, FEW + URL.format(url=url))


def beside(server: FaultyServer, script: Script, file: Path, out: Path) -> tuple[list[Any], FaultyServer]:
    with FaultyServer(script) as other:
        return recorded(file, out, f"{server.url},{other.url}*2"), other


def test_two_endpoints_record_the_rows_of_one(tmp_path: Path, server: FaultyServer) -> None:
    file = study(tmp_path, server.url)
    alone = recorded(file, tmp_path / "one", None)
    together, other = beside(server, shelves, file, tmp_path / "two")
    assert len(alone) == 12 * 7
    assert together == alone
    assert len(other.requests) > 12


@pytest.mark.parametrize("failure", [fails(503), fails(429, retry_after="0")])
def test_an_overloaded_endpoint_loses_no_pass(tmp_path: Path, server: FaultyServer, failure: Play) -> None:
    file = study(tmp_path, server.url)
    together, other = beside(server, in_turn(answers("It is salty."), failure), file, tmp_path / "two")
    assert together == recorded(file, tmp_path / "one", None)
    assert len(other.requests) > 1


def test_an_endpoint_that_is_down_does_not_stop_the_others(tmp_path: Path, server: FaultyServer) -> None:
    file = study(tmp_path, server.url)
    together = recorded(file, tmp_path / "two", f"http://127.0.0.1:9/v1,{server.url}")
    assert together == recorded(file, tmp_path / "one", None)


def test_an_endpoint_with_another_model_is_refused_in_one_sentence(
    tmp_path: Path, server: FaultyServer
) -> None:
    file = study(tmp_path, server.url)
    with pytest.raises(WorkersError, match="serves another model than") as refused:
        beside(server, lambda request: answers("I like boats."), file, tmp_path / "two")
    assert "I like boats." in str(refused.value)


def test_the_studys_own_endpoint_is_the_reference_even_if_it_does_not_work(
    tmp_path: Path, server: FaultyServer
) -> None:
    file = study(tmp_path, server.url)
    with (
        FaultyServer(lambda request: answers("I like boats.")) as other,
        pytest.raises(WorkersError, match=f"serves another model than {server.url}"),
    ):
        recorded(file, tmp_path / "two", other.url)


def test_urls_in_the_study_file_record_together_under_the_name_of_the_first(
    tmp_path: Path, server: FaultyServer
) -> None:
    with FaultyServer(shelves) as other:
        urls = f'[model]\nurls = ["{server.url}", "{other.url}*2"]\nmodel = "m"\n'
        file = written(tmp_path, FEW + urls)
        model = recording_model(read_study(file).model, None)
        assert isinstance(model, Fleet)
        assert [worker.capacity for worker in model.workers] == [4, 8]
        together = recorded(file, tmp_path / "two", None)
    assert together == recorded(study(tmp_path, server.url), tmp_path / "one", None)


def scripted() -> ScriptedModel:
    return shelf_model()


@dataclass
class OnceDeadly(ProcessModel):
    """A process that is killed after a few decodes."""

    left: int = 5

    def __init__(self) -> None:
        super().__init__(scripted, SCRIPTED)

    async def decode(self, prompt: Prompt) -> Decode:
        self.left -= 1
        if self.left == 0 and self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
        return await super().decode(prompt)


async def nothing(worker: Worker) -> None:
    """Every worker is good."""


def test_a_killed_process_is_replaced_and_each_pass_is_recorded_once(tmp_path: Path) -> None:
    space = open_workspace(written(tmp_path, FEW), tmp_path / "out")
    setup = prepare(space.study, None)
    models = [OnceDeadly(), ProcessModel(scripted, SCRIPTED)]
    workers = [Worker(name=str(at), model=model, capacity=2) for at, model in enumerate(models)]

    async def go() -> None:
        fleet = Fleet(workers=workers, identity=SCRIPTED, check=nothing)
        await record(space, setup, fleet, "fit", nobody)
        await fleet.aclose()

    asyncio.run(go())
    alone = open_workspace(written(tmp_path, FEW), tmp_path / "alone")
    asyncio.run(record(alone, setup, shelf_model(), "fit", nobody))
    assert rows(space.ledger) == rows(alone.ledger)
    assert len(space.ledger.read_text().splitlines()) == 12 * 7


def test_a_number_makes_processes_with_one_thread_each() -> None:
    model = recording_model(ModelSettings(slots=2), "3")
    assert isinstance(model, Fleet)
    assert ([worker.name for worker in model.workers], model.capacity) == (
        ["process 1", "process 2", "process 3"],
        6,
    )
    made = model.workers[0].model
    assert isinstance(made, ProcessModel)
    assert isinstance(made._make, partial)
    assert made._make.args[0].threads == 1


@pytest.mark.parametrize(
    ("workers", "url", "problem"),
    [
        ("many", "", "--workers is 'many'; give a number of processes, URLs"),
        ("0", "", "--workers is '0'"),
        ("http://a/v1,", "http://a/v1", "--workers has '' where a URL should be"),
        ("http://a/v1,b/v1", "http://a/v1", "--workers has 'b/v1' where a URL should be"),
        ("100000", "", "model once more: give at most"),
        ("http://a/v1", "", "would serve another model"),
        ("3", "http://a/v1", "is the endpoint http://a/v1"),
        ("http://a/v1*x", "http://a/v1", "weight of 'http://a/v1\\*x' is not a whole number"),
        ("http://a/v1*1000000", "http://a/v1", "not a whole number from 1 to 1000"),
        ("http://a/v1,http://a/v1", "http://a/v1", "--workers has http://a/v1 twice"),
    ],
)
def test_workers_that_make_no_sense_are_refused(workers: str, url: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        recording_model(ModelSettings(url=url), workers)


@pytest.mark.parametrize(
    ("urls", "problem"),
    [
        (("http://a/v1", "b/v1"), r"\[model\] urls has 'b/v1' where a URL should be"),
        (("http://a/v1", "http://a/v1"), r"\[model\] urls has http://a/v1 twice"),
    ],
)
def test_urls_of_a_study_file_are_named_as_such(urls: tuple[str, ...], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        recording_model(ModelSettings(urls=urls), None)


def test_a_missing_ray_is_named_with_its_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "ray")
    with pytest.raises(MissingError, match=r"pip install 'heedful\[ray\]'"):
        recording_model(ModelSettings(), "ray://127.0.0.1:10001")


def test_if_all_endpoints_go_down_everything_recorded_is_kept(tmp_path: Path, server: FaultyServer) -> None:
    file = study(tmp_path, server.url)
    count = iter(range(10_000))
    with (
        FaultyServer(lambda request: shelves(request) if next(count) < 30 else fails(503)) as other,
        pytest.raises(HeedfulError, match=r"no worker answers .*recorded passes are kept"),
    ):
        recorded(file, tmp_path / "two", other.url, hurry)
    kept = len(rows(tmp_path / "two" / "ledger.jsonl"))
    assert 0 < kept < 12 * 7
    assert recorded(file, tmp_path / "two", None) == recorded(file, tmp_path / "one", None)
