"""Conformance suites: what every model, bank, store, journal and benchmark must do.

    def test_my_model_conforms():
        asyncio.run(check_model(MyModel()))

Each raises `AssertionError` with a sentence that says what does not hold.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from heedful.errors import LogprobError, ModelError, UsageError
from heedful.memory.entries import new_entry
from heedful.ports import Bank, Benchmark, Journal, Model, Store
from heedful.records import CandidateRecord, Decision, ModelRef, PassRecord, RecallRef
from heedful.stages.answer import read_answer
from heedful.stages.confidence import check_logprobs
from heedful.types import (
    Decode,
    Entry,
    Evidence,
    Item,
    Mark,
    Message,
    Policy,
    Prompt,
    Route,
    Side,
    State,
    Task,
    Tool,
    ToolCall,
    Usage,
    Verdict,
)

QUESTION = Prompt(messages=(Message(role="user", content="Say the word blue."),), max_tokens=12)
ENTRIES = (
    new_entry("The capital of Freedonia is Fredville.", kind="fact", id="capital"),
    new_entry("Parcels leave the warehouse at four.", kind="rule", id="parcels"),
    new_entry("Parcels leave the warehouse at four.", kind="fact", id="parcels-twin"),
    new_entry("How many is a dozen?", kind="exemplar", response="A dozen is 12.", id="dozen"),
)
STATES: tuple[State, ...] = get_args(State)
_FIRST = PassRecord(
    source="none",
    prompt="digest",
    model="fingerprint",
    status="decoded",
    text="blue",
    answer="blue",
    finish="stop",
    signals={"mean": -0.25},
    guards={"format": ""},
    calls=1,
    usage=Usage(prompt_tokens=7, completion_tokens=1, cached_tokens=2),
    seconds=0.5,
)
DECISION = Decision(
    id="0abc",
    at=0.0,
    task=Task(
        question="Say the word blue.",
        earlier=(Message(role="assistant", content="", tool_calls=(ToolCall(name="paint", id="c1"),)),),
        tools=(Tool(name="paint", parameters={"type": "object"}),),
    ),
    model=ModelRef(name="model", endpoint="endpoint", fingerprint="fingerprint"),
    policy=Policy(threshold=float("inf"), sources=("facts",), margins={"facts": 0.5}),
    policy_id="policy",
    sources={"facts": {"kind": "memory", "bank": "facts", "limit": 3}},
    first=_FIRST,
    confidence=-0.25,
    route=Route(choice="consult", reason="always"),
    candidates=(
        CandidateRecord(
            record=replace(_FIRST, source="facts", recalls=(RecallRef(entry="e", version="v", score=0.75),)),
            confidence=None,
            verdict=Verdict(choice="rollback", reason="no confidence"),
        ),
    ),
    verdict=Verdict(choice="rollback", reason="no confidence"),
    chosen=None,
    answer="blue",
    calls=2,
    usage=Usage(prompt_tokens=14, completion_tokens=2, cached_tokens=4),
    seconds=1.0,
    overhead_seconds=0.001,
    faults=(),
)


def require(holds: bool, sentence: str) -> None:
    if not holds:
        raise AssertionError(sentence)


async def check_model(model: Model) -> None:
    """A model answers, tells the truth about its log-probs and keeps to its limits."""
    require(isinstance(model, Model), _lacks(model, Model))
    require(bool(model.traits.name), "a model's traits name it")
    require(model.traits.fingerprint != "", "a model's traits hold a fingerprint")
    decode = await model.decode(QUESTION)
    _check_decode(model, decode)
    again = await model.decode(QUESTION)
    require(again.text == decode.text, "a greedy decode says the same twice")
    both = await asyncio.gather(model.decode(QUESTION), model.decode(QUESTION))
    require(all(isinstance(one, Decode) for one in both), "decodes may run side by side")
    await model.aclose()
    require((await model.decode(QUESTION)).text == decode.text, "a model that was closed may be used again")


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
    require(isinstance(bank, Bank), _lacks(bank, Bank))
    require({e.id for e in bank.entries()} == {e.id for e in ENTRIES}, "a bank keeps all its entries")
    found = await bank.recall("When do parcels leave the warehouse?", limit=2)
    require([r.entry.id for r in found] == ["parcels", "parcels-twin"], "the best come first, ties by id")
    scores = [recall.score for recall in found]
    require(scores == sorted(scores, reverse=True), "scores fall from first to last")
    again = await bank.recall("When do parcels leave the warehouse?", limit=2)
    require(again == found, "the same query finds the same entries")
    require(len(await bank.recall("When do parcels leave the warehouse?", limit=1)) == 1, "limit is kept")
    await _check_states_of_bank(make)
    _check_digest(make)
    require(tuple(await make(()).recall("anything", limit=3)) == (), "an empty bank finds nothing")


async def _check_states_of_bank(make: Callable[[Sequence[Entry]], Bank]) -> None:
    for state in STATES:
        bank = make([replace(e, state=state, reason="test") if e.id == "parcels" else e for e in ENTRIES])
        found = {r.entry.id for r in await bank.recall("When do parcels leave the warehouse?", limit=4)}
        if state in ("retired", "quarantined"):
            require("parcels" not in found, f"a {state} entry is never recalled")
        else:
            require("parcels" in found, f"an entry that is {state} is recalled")
        require("parcels" in {e.id for e in bank.entries()}, f"a {state} entry stays in the bank")


def _check_digest(make: Callable[[Sequence[Entry]], Bank]) -> None:
    digest = make(ENTRIES).digest
    require(
        make(tuple(reversed(ENTRIES))).digest == digest, "the order of entries does not change the digest"
    )
    require(make(ENTRIES[1:]).digest != digest, "another set of entries has another digest")
    changed = [replace(ENTRIES[0], state="retired", reason="test"), *ENTRIES[1:]]
    require(make(changed).digest != digest, "retiring an entry changes the digest")


def check_benchmark(benchmark: Benchmark, data: Path) -> None:
    """A benchmark gives the same rows every time, tells its sides apart and grades its own targets right."""
    require(isinstance(benchmark, Benchmark), _lacks(benchmark, Benchmark))
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


async def check_store(store: Store) -> None:
    """A store appends, marks and keeps evidence, and its revision grows; `conformance` must be unused."""
    require(isinstance(store, Store), _lacks(store, Store))
    bank = "conformance"
    require(list(await store.entries(bank)) == [], "the bank `conformance` is unused")
    require(await store.put(bank, ENTRIES) == len(ENTRIES), "new entries are counted")
    before = await store.revision(bank)
    require(await store.put(bank, ENTRIES) == 0, "what is there already adds nothing")
    require(await store.revision(bank) == before, "what adds nothing leaves the revision alone")
    require(tuple(await store.entries(bank)) == ENTRIES, "entries come back as they were, in order")
    require((await store.banks()).get(bank) == len(ENTRIES), "a bank is listed with its entries")
    require(list(await store.entries("another bank")) == [], "banks are kept apart")
    await _check_states(store, bank)
    await _check_versions(store, bank)
    seen = Evidence(entry="dozen", version=ENTRIES[3].digest, task="t1", utility=-1.0, decision="d1")
    await store.observe(bank, [seen])
    require(list(await store.evidence(bank)) == [seen], "evidence comes back as it was")
    require(list(await store.evidence("another bank")) == [], "evidence is kept by bank")


async def _check_states(store: Store, bank: str) -> None:
    before = await store.revision(bank)
    [marked] = await store.mark(bank, [Mark(entry="dozen", state="retired", reason="test")])
    require(marked.state == "retired", "mark returns the new state")
    require((await store.entry(bank, "dozen")).state == "retired", "a mark is kept")
    require(await store.revision(bank) > before, "a mark grows the revision")
    changes = [(change.state, change.reason) for change in await store.history(bank, "dozen")]
    require(changes == [("retired", "test")], "the history tells every change with its reason")
    await store.mark(bank, [Mark(entry="capital", state="protected")])
    for state in ("retired", "quarantined"):
        both = [Mark(entry="parcels", state=state), Mark(entry="capital", state=state)]
        await _refuses(store.mark(bank, both), f"a protected entry cannot be {state}")
    require((await store.entry(bank, "parcels")).state == "active", "marks are set all or none")


async def _check_versions(store: Store, bank: str) -> None:
    old = ENTRIES[0]
    new = new_entry("The capital of Freedonia is Newtown.", kind="fact", id=old.id)
    before = await store.revision(bank)
    require(await store.put(bank, [new]) == 1, "a changed entry is a new version")
    require(await store.revision(bank) > before, "a new version grows the revision")
    kept = await store.entry(bank, old.id)
    require((kept.text, kept.state) == (new.text, "protected"), "a new version keeps the entry's state")
    digests = [version.digest for version in await store.versions(bank, old.id)]
    require(digests == [old.digest, new.digest], "versions come oldest first")
    require((await store.version(bank, old.id, old.digest)).text == old.text, "an old version is found")
    await _refuses(store.entry(bank, "nobody"), "an unknown entry is refused")


async def check_journal(journal: Journal) -> None:
    """A journal keeps decisions whole, finds them and purges old ones; it must be empty."""
    require(isinstance(journal, Journal), _lacks(journal, Journal))
    await _refuses(journal.find("last"), "an empty journal has no last decision")
    decisions = [replace(DECISION, id=f"{place}abc", at=float(place)) for place in range(3)]
    for decision in decisions:
        await journal.record(decision)
    require(await journal.find("1abc") == decisions[1], "a decision comes back as it was")
    require(await journal.find("1") == decisions[1], "a decision is found by the beginning of its id")
    require((await journal.find("last")).id == "2abc", "the last decision is the newest")
    recent = [decision.id for decision in await journal.recent(2)]
    require(recent == ["2abc", "1abc"], "recent decisions come newest first, and no more than asked for")
    require(await journal.purge(before=2.0) == 2, "purge deletes what is older and counts it")
    require(len(await journal.recent(9)) == 1, "what was purged is gone")


def _lacks(thing: object, port: type) -> str:
    """The sentence about the methods that a port asks for and a thing does not have."""
    missing = [name for name in dir(port) if not name.startswith("_") and not hasattr(thing, name)]
    return f"{type(thing).__name__} is no {port.__name__}: it lacks {', '.join(missing)}"


async def _refuses(call: Awaitable[object], sentence: str) -> None:
    try:
        await call
    except UsageError:
        return
    raise AssertionError(f"{sentence}, with a UsageError")
