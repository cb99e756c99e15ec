"""A Ray cluster on this machine records studies; a node is killed meanwhile, or all of it."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import ModelError, UsageError, WorkersError
from heedful.models.fleet import Fleet, Worker
from heedful.models.ray_actor import RayModel, connect, insist
from heedful.models.scripted import SCRIPTED, ScriptedModel
from heedful.protocol.ledger import Ledger
from heedful.protocol.record import RecordingProgress
from heedful.protocol.setup import prepare
from heedful.protocol.workflow import record
from heedful.protocol.workspace import open_workspace
from heedful.types import Decode, Message, Prompt
from tests.faulty import FaultyServer, Play, Request
from tests.protocol.shelves import QUICK, shelf_model, written
from tests.protocol.test_workers import recorded, rows, shelves, study

pytest.importorskip("ray", reason="pip install 'heedful[ray]' for the tests with a Ray cluster")
ROOT = Path(__file__).parents[2]
ROWS, PASSES = 12, 12 * 7


def scripted() -> ScriptedModel:
    return shelf_model()


class SlowModel:
    """Takes a moment for each decode, so that a killed node owes some."""

    def __init__(self) -> None:
        self.model = scripted()
        self.traits = self.model.traits

    async def decode(self, prompt: Prompt) -> Decode:
        await asyncio.sleep(0.05)
        return await self.model.decode(prompt)

    async def aclose(self) -> None:
        """Nothing to release."""


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a cluster; its nodes import heedful and the tests from this folder."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("GRPC_ENABLE_FORK_SUPPORT", "0")  # or the process of a client may not start
    monkeypatch.setenv("RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S", "200")  # the cores may be busy
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "src")]))


@pytest.fixture
def cluster(settled: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    import ray
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # Ray was imported without a token
    node = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80_000_000}
    made = Cluster(initialize_head=True, head_node_args=node)
    for _ in range(2):
        made.add_node(num_cpus=1, object_store_memory=80_000_000)
    ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
    yield made
    ray.shutdown()
    made.shutdown()


class Counted(RayModel):
    """Counts the decodes that were begun and not answered: lost, or overtaken by another actor's."""

    unanswered = 0

    async def decode(self, prompt: Prompt) -> Decode:
        self.unanswered += 1
        decode = await super().decode(prompt)
        self.unanswered -= 1
        return decode


async def nothing(worker: Worker) -> None:
    """Every worker is good."""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_each_pass_is_recorded_once_although_a_node_is_killed(tmp_path: Path, cluster: Any) -> None:
    text = QUICK.replace("[sources.notes]", f"[split]\nfit = {ROWS}\n[sources.notes]")
    space = open_workspace(written(tmp_path, text), tmp_path / "out")
    setup = prepare(space.study, None)
    nodes = connect("ray://local")
    models = [Counted(SlowModel, SCRIPTED, capacity=2, cpus=1.0) for _ in range(nodes)]
    workers = [Worker(name=str(at), model=model, capacity=2) for at, model in enumerate(models)]
    fleet = Fleet(workers=workers, identity=SCRIPTED, check=nothing)
    killed: list[int] = []

    def kill_in_the_middle(progress: RecordingProgress) -> None:
        if progress.done >= PASSES // 3 and not killed:
            killed.append(progress.done)
            cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)

    asyncio.run(record(space, setup, fleet, "fit", kill_in_the_middle))
    lines = space.ledger.read_text().splitlines()
    kept = Ledger(space.ledger).passes
    assert (nodes, len(killed)) == (3, 1)
    assert sum(model.unanswered for model in models) > 0
    assert len(lines) == len(kept) == PASSES
    assert {row.record.status for row in kept.values()} == {"decoded"}


def heed_interrupts() -> None:
    """Tests in the background of a shell ignore SIGINT, and so would the commands that they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for(port: int) -> None:
    """The client server starts after its node."""
    for _ in range(600):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def address(settled: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A head node for clients outside of it, which asks them for a token."""
    monkeypatch.setenv("RAY_AUTH_TOKEN", "ab" * 32)
    port = free_port()
    command = [str(Path(sys.executable).parent / "ray"), "start", "--head", "--block"]
    command += ["--node-ip-address=127.0.0.1", "--include-dashboard=false", "--num-cpus=1"]
    command += ["--object-store-memory=80000000", f"--port={free_port()}", f"--ray-client-server-port={port}"]
    with subprocess.Popen(
        command, env={**os.environ, "RAY_AUTH_MODE": "token"}, stdout=subprocess.DEVNULL
    ) as node:
        wait_for(port)
        yield f"ray://127.0.0.1:{port}"
        node.terminate()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_command_outside_the_cluster_records_the_rows_of_a_local_run(tmp_path: Path, address: str) -> None:
    def interrupt(request: Request) -> Play:
        """Answers, and interrupts the first command in the middle."""
        if len(server.requests) == PASSES // 2:
            commands[0].send_signal(signal.SIGINT)
        return shelves(request)

    commands: list[subprocess.Popen[str]] = []
    with FaultyServer(interrupt) as server:
        file, out = study(tmp_path, server.url), tmp_path / "ray"
        words = ["study", "record", str(file), "--out", str(out), "--workers", address]
        for code in (130, 0):
            command = [sys.executable, "-m", "heedful", *words]
            with subprocess.Popen(
                command, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts
            ) as running:
                commands.append(running)
                _, errors = running.communicate()
            assert (running.returncode, "Traceback" in errors) == (code, False), errors
        assert rows(out / "ledger.jsonl") == recorded(file, tmp_path / "local", None)


def test_an_actor_is_not_started_without_a_connection_to_its_cluster() -> None:
    model = RayModel(scripted, SCRIPTED, capacity=1, cpus=1.0)
    prompt = Prompt(messages=(Message(role="user", content="What is on shelf 1?"),))
    with pytest.raises(ModelError, match="the connection to the cluster is closed"):
        asyncio.run(model.decode(prompt))


def test_a_cluster_that_is_not_there_is_refused_in_one_sentence() -> None:
    with pytest.raises(WorkersError, match=r"nothing answers at ray://127\.0\.0\.1:9 .*ray start --head"):
        connect("ray://127.0.0.1:9")


@pytest.mark.parametrize(("failures", "attempts"), [(0, 1), (2, 3), (9, 3)])
def test_a_session_that_did_not_start_is_asked_for_three_times(failures: int, attempts: int) -> None:
    asked: list[int] = []

    def start() -> None:
        asked.append(1)
        if len(asked) <= failures:
            raise ConnectionAbortedError("Initialization failure from server")

    with pytest.raises(ConnectionError) if failures > attempts else nullcontext():
        insist(start)
    assert len(asked) == attempts


@pytest.mark.parametrize("address", ["ray://", "ray://head", "ray://head:many"])
def test_an_address_without_host_or_port_is_refused_in_one_sentence(address: str) -> None:
    with pytest.raises(UsageError, match="is not ray://HOST:PORT"):
        connect(address)
