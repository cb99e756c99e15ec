"""Conformance suites: what every model, bank, store and benchmark must do, for the people who write one.

    def test_my_model_conforms():
        asyncio.run(check_model(MyModel()))

Each raises `AssertionError` with a sentence that says what does not hold.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from heedful.errors import LogprobError, ModelError
from heedful.memory.entries import new_entry
from heedful.ports import Bank, Benchmark, Model, Store
from heedful.stages.answer import read_answer
from heedful.stages.confidence import check_logprobs
from heedful.types import Decode, Entry, Evidence, Item, Message, Prompt, Side

QUESTION = Prompt(messages=(Message(role="user", content="Say the word blue."),), max_tokens=12)
ENTRIES = (
    new_entry("The capital of Freedonia is Fredville.", kind="fact", id="capital"),
    new_entry("Parcels leave the warehouse at four.", kind="rule", id="parcels"),
    new_entry("Parcels leave the warehouse at four.", kind="fact", id="parcels-twin"),
    new_entry("How many is a dozen?", kind="exemplar", response="A dozen is 12.", id="dozen"),
)


def require(holds: bool, sentence: str) -> None:
    if not holds:
        raise AssertionError(sentence)


async def check_model(model: Model) -> None:
    """A model answers, tells the truth about its log-probs and keeps to its limits."""
    require(isinstance(model, Model), "a model has traits and decode")
    require(bool(model.traits.name), "a model's traits name it")
    require(model.traits.fingerprint != "", "a model's traits hold a fingerprint")
    decode = await model.decode(QUESTION)
    _check_decode(model, decode)
    again = await model.decode(QUESTION)
    require(again.text == decode.text, "a greedy decode says the same twice")
    both = await asyncio.gather(model.decode(QUESTION), model.decode(QUESTION))
    require(all(isinstance(one, Decode) for one in both), "decodes may run side by side")


def _check_decode(model: Model, decode: Decode) -> None:
    require(isinstance(decode, Decode), "decode returns a Decode")
    require(bool(decode.text), "a plain question gets a text")
    require(decode.seconds >= 0, "a decode's time is not negative")
    if not model.traits.logprobs:
        require(decode.tokens == (), "a model whose traits say it has no log-probs gives none")
        return
    try:
        check_logprobs(decode)
    except LogprobError as error:
        raise AssertionError(f"the log-probs make sense: {error}") from error
    for token in decode.tokens:
        require(len(token.top) >= min(1, model.traits.top_logprobs), "tokens come with their alternatives")
        values = [logprob for _, logprob in token.top]
        require(values == sorted(values, reverse=True), "alternatives come highest first")


async def check_model_fails_openly(model: Model) -> None:
    """A model whose endpoint is gone raises `ModelError`, nothing else."""
    try:
        await model.decode(QUESTION)
    except ModelError:
        return
    raise AssertionError("a model that cannot answer raises ModelError")


async def check_bank(make: Callable[[Sequence[Entry]], Bank]) -> None:
    """A bank finds what fits, in one order, and never what is retired."""
    bank = make(ENTRIES)
    require(isinstance(bank, Bank), "a bank has a name, a digest, a spec, entries and recall")
    require({e.id for e in bank.entries()} == {e.id for e in ENTRIES}, "a bank keeps all its entries")
    found = await bank.recall("When do parcels leave the warehouse?", limit=2)
    require([r.entry.id for r in found] == ["parcels", "parcels-twin"], "the best come first, ties by id")
    scores = [recall.score for recall in found]
    require(scores == sorted(scores, reverse=True), "scores fall from first to last")
    again = await bank.recall("When do parcels leave the warehouse?", limit=2)
    require(again == found, "the same query finds the same entries")
    require(len(await bank.recall("When do parcels leave the warehouse?", limit=1)) == 1, "limit is kept")
    await _check_retirement(make)
    _check_digest(make)
    require(tuple(await make(()).recall("anything", limit=3)) == (), "an empty bank finds nothing")


async def _check_retirement(make: Callable[[Sequence[Entry]], Bank]) -> None:
    bank = make([_retired(e) if e.id == "parcels" else e for e in ENTRIES])
    found = await bank.recall("When do parcels leave the warehouse?", limit=4)
    require("parcels" not in {r.entry.id for r in found}, "a retired entry is never recalled")
    require("parcels" in {e.id for e in bank.entries()}, "a retired entry stays in the bank")


def _check_digest(make: Callable[[Sequence[Entry]], Bank]) -> None:
    digest = make(ENTRIES).digest
    require(
        make(tuple(reversed(ENTRIES))).digest == digest, "the order of entries does not change the digest"
    )
    require(make(ENTRIES[1:]).digest != digest, "another set of entries has another digest")
    changed = [_retired(ENTRIES[0]), *ENTRIES[1:]]
    require(make(changed).digest != digest, "retiring an entry changes the digest")


def _retired(entry: Entry) -> Entry:
    return Entry(
        id=entry.id, kind=entry.kind, text=entry.text, response=entry.response, state="retired", reason="test"
    )


def check_benchmark(benchmark: Benchmark, data: Path) -> None:
    """A benchmark gives the same rows every time, tells its sides apart and grades its own targets right."""
    require(isinstance(benchmark, Benchmark), "a benchmark has a name, load, task, grade and exemplar")
    sides: dict[Side, Sequence[Item]] = {side: benchmark.load(data, side) for side in ("fit", "test")}
    items = [item for rows in sides.values() for item in rows]
    require(bool(items), "a benchmark has rows")
    for side, rows in sides.items():
        require(list(benchmark.load(data, side)) == list(rows), "the rows of a side come in one order")
    ids = [item.id for item in items]
    require(len(set(ids)) == len(ids), "every row has an id of its own, over both sides")
    for item in items:
        task = benchmark.task(item)
        require(task.id == item.id, "a task keeps its row's id")
        require(item.question in task.question, "a task asks its row's question")
        require(benchmark.grade(item.answer, item), f"the target of {item.id} is graded right")
        require(not benchmark.grade("", item), "an empty answer is graded wrong")
        _check_exemplar(benchmark, item)


def _check_exemplar(benchmark: Benchmark, item: Item) -> None:
    worked = benchmark.exemplar(item)
    if worked is None:
        return
    require(worked.kind == "exemplar" and bool(worked.response), "an exemplar has a worked response")
    said = read_answer(Decode(text=worked.response), benchmark.task(item))
    require(benchmark.grade(said.answer, item), f"the exemplar of {item.id} says the right answer")


def check_store(store: Store) -> None:
    """A store appends, marks and keeps evidence; the bank `conformance` must be unused."""
    bank = "conformance"
    require(store.put(bank, ENTRIES) == len(ENTRIES), "new entries are counted")
    require(store.put(bank, ENTRIES) == 0, "what is there already adds nothing")
    require(tuple(store.entries(bank)) == ENTRIES, "entries come back as they were, in order")
    require(store.mark(bank, "dozen", "retired", "test").state == "retired", "mark returns the new state")
    states = {entry.id: entry.state for entry in store.entries(bank)}
    require(states["dozen"] == "retired", "a mark is kept")
    require(list(store.entries("another bank")) == [], "banks are kept apart")
    seen = Evidence(entry="dozen", version=ENTRIES[3].digest, task="t1", utility=-1.0, decision="d1")
    store.observe(bank, [seen])
    require(list(store.evidence(bank)) == [seen], "evidence comes back as it was")
