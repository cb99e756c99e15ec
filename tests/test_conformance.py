"""Every model adapter passes the public conformance suite, and the suite refuses what does not conform."""

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from heedful import ModelError, ScriptedModel, SqliteStore
from heedful.benchmarks import BENCHMARKS
from heedful.benchmarks.questions import OwnQuestions
from heedful.models.embedded import EmbeddedModel
from heedful.models.scripted import SCRIPTED
from heedful.ports import Journal, Store
from heedful.testing import (
    check_bank,
    check_benchmark,
    check_environment,
    check_journal,
    check_model,
    check_model_fails_openly,
    check_store,
)
from heedful.types import Audience, Decode, Entry, Mark, Observation, Recall, StateChange, Token, digest_of
from tests.agents.toy_world import BoxWorld
from tests.making import FixedBank


def test_the_scripted_model_conforms() -> None:
    asyncio.run(check_model(ScriptedModel(script=lambda prompt: "blue it is")))
    silent = replace(SCRIPTED, logprobs=False, top_logprobs=0)
    asyncio.run(check_model(ScriptedModel(script=lambda prompt: "blue", traits=silent)))
    asyncio.run(check_model_fails_openly(ScriptedModel(script=lambda prompt: ModelError("down"))))


@pytest.mark.engine
def test_the_embedded_model_and_so_the_chat_adapter_conform(engine: EmbeddedModel) -> None:
    asyncio.run(check_model(engine))
    asyncio.run(check_model(engine.chat))


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        (Decode(text=""), "gets a text"),
        (Decode(text="blue"), "log-probs are valid"),
        (Decode(text="blue", tokens=(Token("blue", 0.0),)), "log-probs are valid"),
        (Decode(text="blue", tokens=(Token("blue", -0.1),)), "alternatives"),
        (Decode(text="blue", tokens=(Token("blue", -0.1, (("a", -2.0), ("b", -1.0))),)), "highest first"),
    ],
)
def test_a_model_that_does_not_conform_is_told_why(reply: Decode, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        asyncio.run(check_model(ScriptedModel(script=lambda prompt: reply)))


def test_a_model_that_changes_its_mind_does_not_conform() -> None:
    replies = iter(["blue", "red", "blue", "red"])
    with pytest.raises(AssertionError, match="returns the same text"):
        asyncio.run(check_model(ScriptedModel(script=lambda prompt: next(replies))))


@pytest.mark.parametrize("name", BENCHMARKS)
@pytest.mark.skipif("HEEDFUL_DATA" not in os.environ, reason="the published data are not part of heedful")
def test_the_benchmarks_conform(name: str) -> None:
    check_benchmark(BENCHMARKS[name], Path(os.environ["HEEDFUL_DATA"]))


def written(folder: Path, *rows: tuple[str, str, str]) -> OwnQuestions:
    lines = [json.dumps({"id": id, "question": question, "answer": answer}) for id, question, answer in rows]
    (folder / "q.jsonl").write_text("\n".join(lines))
    return OwnQuestions(name="own", fit=Path("q.jsonl"))


def test_own_questions_conform(tmp_path: Path) -> None:
    check_benchmark(written(tmp_path, ("1", "Who?", "Ann"), ("2", "Where?", "Ghent")), tmp_path)


@pytest.mark.parametrize(
    ("rows", "metric", "complaint"),
    [
        ([("1", "Who?", "Ann"), ("2", "Where?", "Ghent")], "python:operator:le", "graded as wrong"),
        ([], "text", "has rows"),
    ],
)
def test_a_benchmark_that_does_not_conform_is_told_why(
    tmp_path: Path, rows: list[tuple[str, str, str]], metric: str, complaint: str
) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_benchmark(replace(written(tmp_path, *rows), metric=metric), tmp_path)


def test_a_benchmark_whose_sides_share_an_id_does_not_conform(tmp_path: Path) -> None:
    shared = replace(written(tmp_path, ("1", "Who?", "Ann")), test=Path("q.jsonl"))
    with pytest.raises(AssertionError, match="a unique id"):
        check_benchmark(shared, tmp_path)


class Careless(FixedBank):
    """A bank that recalls by shared words whatever the state of an entry, or leaves out one state only."""

    def __init__(self, entries: Sequence[Entry], hidden: Sequence[str], scoped: bool = True) -> None:
        super().__init__(entries)
        self.scoped = scoped
        self.digest = digest_of(sorted([e.id, e.digest, e.state] for e in entries))
        self.hidden = hidden

    async def recall(self, query: str, *, limit: int, audience: Audience | None = None) -> Sequence[Recall]:
        shared = set(query.lower().split())
        found = [(len(shared & set(e.text.lower().split())), e) for e in self._entries]
        found = [(n, e) for n, e in found if n > 1 and e.state not in self.hidden]
        if audience is not None and self.scoped:
            found = [(n, e) for n, e in found if audience.sees(e)]
        found.sort(key=lambda pair: (-pair[0], pair[1].id))
        return tuple(Recall(entry=entry, score=float(n)) for n, entry in found[:limit])


@pytest.mark.parametrize(
    ("hidden", "complaint"),
    [
        ((), "quarantined entry is never recalled"),
        (("retired",), "quarantined entry is never recalled"),
        (("quarantined",), "retired entry is never recalled"),
        (("retired", "quarantined", "protected"), "protected is recalled"),
    ],
)
def test_a_bank_that_does_not_look_at_states_does_not_conform(
    hidden: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(AssertionError, match=complaint):
        asyncio.run(check_bank(lambda entries: Careless(entries, hidden)))
    asyncio.run(check_bank(lambda entries: Careless(entries, ("retired", "quarantined"))))


def test_a_bank_that_does_not_look_at_scopes_does_not_conform() -> None:
    with pytest.raises(AssertionError, match="outside its scope"):
        asyncio.run(check_bank(lambda entries: Careless(entries, ("retired", "quarantined"), scoped=False)))


def test_a_store_or_journal_without_all_methods_does_not_conform_and_is_told_which() -> None:
    class Half:
        async def put(self, bank: str, entries: Sequence[Entry]) -> int:
            return len(entries)

    with pytest.raises(AssertionError, match=r"Half is not a Store: it lacks aclose, audit, banks, entries"):
        asyncio.run(check_store(cast(Store, Half())))
    with pytest.raises(AssertionError, match=r"Half is not a Journal: it lacks .*purge, recent, record"):
        asyncio.run(check_journal(cast(Journal, Half())))


@pytest.mark.parametrize("broken", ["revision", "mark", "versions", "audit"])
def test_a_store_that_forgets_something_does_not_conform(broken: str, store: SqliteStore) -> None:
    class Broken(SqliteStore):
        pass

    async def revision(self: SqliteStore, bank: str) -> int:
        return 1

    async def mark(self: SqliteStore, bank: str, marks: Sequence[Mark]) -> Sequence[Entry]:
        return [replace(await self.entry(bank, mark.entry), state=mark.state) for mark in marks]

    async def versions(self: SqliteStore, bank: str, entry: str) -> Sequence[Entry]:
        return [await self.entry(bank, entry)]

    async def audit(self: SqliteStore, bank: str) -> Sequence[StateChange]:
        return [replace(change, by="") for change in await SqliteStore.audit(self, bank)]

    setattr(Broken, broken, locals()[broken])
    with pytest.raises(AssertionError):
        asyncio.run(check_store(Broken(store.database)))


def test_a_toy_world_conforms() -> None:
    check_environment(BoxWorld)


class Restless(BoxWorld):
    """Says something new at every reset."""

    def reset(self, seed: int) -> Observation:
        seen = super().reset(seed)
        self.resets = getattr(self, "resets", 0) + 1
        return replace(seen, text=f"{seen.text} {self.resets}")


class Forgiving(BoxWorld):
    """Takes nonsense for a solution."""

    def step(self, action: str) -> Observation:
        return replace(super().step(action), score=0.5)


class Overlapping(BoxWorld):
    def seeds(self, side: str) -> range:
        return range(3)


class Clueless(BoxWorld):
    def gold(self, seed: int) -> Sequence[str]:
        return ("go west",)


@pytest.mark.parametrize(
    ("world", "complaint"),
    [
        (Restless, "same observations"),
        (Forgiving, "invalid action changes nothing"),
        (Overlapping, "listed twice"),
        (Clueless, "end the episode with a score of 1"),
    ],
)
def test_a_world_that_does_not_conform_is_told_why(world: type[BoxWorld], complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_environment(world)
