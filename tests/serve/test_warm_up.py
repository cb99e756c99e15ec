"""Banks are loaded before the first request, and a server without memory says so."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from heedful import Controller, MemoryBank, MemorySource, ScriptedModel, arms, new_entry
from heedful.memory.index import Floats
from heedful.serve.served_policies import ServedPolicy
from heedful.serve.warm_up import warm_up
from tests.faulty import FaultyServer
from tests.making import FixedBank
from tests.serve.serving import NOTE, make_service, serving
from tests.serve.test_chat_route import unsure


class CountingEmbedder:
    """Notes the texts that it embeds."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def embed(self, texts: Sequence[str]) -> Floats:
        self.texts += texts
        return np.ones((len(texts), 2), dtype=np.float32) / np.sqrt(2, dtype=np.float32)


def served(bank: MemoryBank | FixedBank) -> list[ServedPolicy]:
    controller = Controller(
        model=ScriptedModel(script=lambda prompt: "yes"),
        policy=arms.gate("memory", threshold=-0.3),
        sources={"memory": MemorySource(bank=bank)},
    )
    return [ServedPolicy(name="default", controller=controller)]


def test_every_bank_is_embedded_before_the_first_request() -> None:
    own = replace(new_entry("Ann's desk opens at 9.", kind="fact"), scope={"user": "ann"})
    for entries in ([NOTE], [own]):
        texts: list[str] = []
        bank = MemoryBank("desk", entries, embedder=partial(CountingEmbedder, texts))
        assert asyncio.run(warm_up(served(bank))) == {}
        assert entries[0].text in texts


def test_a_bank_that_cannot_be_loaded_is_named() -> None:
    problems = asyncio.run(warm_up(served(FixedBank([], error=OSError("no weights")))))
    assert problems == {"fixed": "no weights"}


def test_a_server_without_memory_is_ready_and_says_so(tmp_path: Path) -> None:
    problem = {"desk": "the weights are missing"}
    with FaultyServer(unsure) as upstream:
        service = make_service(upstream.url, tmp_path, without_memory=problem)
        with serving(service) as client:
            ready = client.send("GET", "/readyz")
    assert (ready.status, ready.json) == (200, {"status": "ready", "without_memory": problem})
